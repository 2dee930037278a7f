"""What spoils a figure, and what a bus can carry."""

import pytest

from evmperf.explain import compared, facts
from evmperf.measure.state import buses, rules
from evmperf.model.results import Sample
from evmperf.model.state import State
from selftests.support.spools import a_case

PCI = "pci.0000:01:00.0."
HEALTHY = {
    "cpu.policy0.scaling_governor": "performance",
    "cpu.policy0.scaling_max_freq": 1400000,
    "cpu.policy0.cpuinfo_max_freq": 1400000,
    "cooling_device0.type": "cpufreq-cpu0",
    "cooling_device0.cur_state": 0,
    "cooling_device1.type": "pwm-fan",
    "cooling_device1.cur_state": 3,
    f"{PCI}current_link_speed": "8.0 GT/s PCIe",
    f"{PCI}max_link_speed": "16.0 GT/s PCIe",
    f"{PCI}current_link_width": 2,
    f"{PCI}max_link_width": 4,
    "pci.0000:00:00.0.max_link_speed": "8.0 GT/s PCIe",
    "pci.0000:00:00.0.max_link_width": 2,
    "net.speed": -1,
}


def found(state, ours=()):
    return {finding.rule: finding.refuses for finding in rules.judge(state, ours)}


def test_a_healthy_board_has_no_findings():
    state = State(
        shown={**HEALTHY, "mmc.ios.clock": "0 Hz", "mmc.ios.timing_spec": "0 (legacy)"},
        changed={
            "net.speed": 1000,
            "running": 3,
            "mmc.ios.clock": "52000000 Hz",
            "mmc.ios.timing_spec": "1 (mmc high-speed)",
            "ufs.gear": "HS_GEAR1",
        },
        seconds=10.0,
        beside={"fio (9)": 9.0, "sshd (4)": 0.3},
        clock=(0.98, 1.02),
        counted={"interrupts": 90000, "net.rx_dropped": 4},
    )
    assert found(state, ["fio"]) == {}


@pytest.mark.parametrize(
    ("state", "rule", "refuses"),
    [
        ({"clock": (2.5, 2.7)}, "clock", True),
        ({"clock": (0.9, 0.98)}, "clock", True),
        ({"changed": {"cooling_device0.cur_state": 2}}, "throttled", True),
        ({"shown": {**HEALTHY, "cooling_device0.cur_state": 2}}, "throttled", False),
        ({"shown": {**HEALTHY, "cpu.policy0.scaling_max_freq": 800000}}, "limited", False),
        ({"changed": {"cpu.policy0.scaling_max_freq": 800000}}, "changed", True),
        (
            {"shown": {"devfreq.gpu.max_freq": 250, "devfreq.gpu.available_frequencies": "250 500"}},
            "limited",
            False,
        ),
        ({"changed": {f"{PCI}current_link_width": 1}}, "changed", True),
        ({"shown": {**HEALTHY, f"{PCI}current_link_width": 1}}, "down-trained", False),
        ({"shown": {**HEALTHY, f"{PCI}current_link_speed": "2.5 GT/s"}}, "down-trained", False),
        ({"counted": {"mmc.err_stats.Data_CRC_Errors_Occurred": 1}}, "errors", True),
        ({"counted": {f"{PCI}aer_dev_correctable.TOTAL_ERR_COR": 1}}, "errors", True),
        ({"counted": {"net.rx_crc_errors": 1}}, "errors", True),
        ({"counted": {"net.carrier_down_count": 4}}, "link lost", True),
        ({"shown": {**HEALTHY, "wall_s": 1000}, "changed": {"wall_s": 1006}}, "stepped", True),
        ({"counted": {"ethtool-S.Rx_CRC_Errors": 1}}, "errors", True),  # the old driver of CPSW
        ({"beside": {"hog (3)": 9.8}, "seconds": 10.0}, "beside", False),
        ({"shown": {"cpu.online": "0,2-3", "cpu.present": "0-3"}}, "offline", False),
        ({"shown": {"memory_kib": 1000000, "memory_available_kib": 90000}}, "memory", False),
        ({"shown": {"memory_kib": 1000000, "memory_dirty_kib": 60000}}, "dirty", False),
        ({"shown": {"queue.read_ahead_kb": 0}}, "read-ahead", False),
        ({"shown": {"tester.tc": "qdisc tbf 8001: root refcnt 2 rate 100Mbit"}}, "shaped", False),
        ({"counted": {"tester.tcp_sent": 10000, "tester.tcp_sent_again": 30}}, "loss", False),
    ],
)
def test_a_fault_is_found_by_its_rule_alone(state, rule, refuses):
    assert found(State(**{"shown": HEALTHY, **state})) == {rule: refuses}


def differs(here, there, setting="x"):
    states = (State(shown={} if value is None else {setting: value}) for value in (here, there))
    return [(finding.rule, finding.size) for finding in facts.between(*states, "r1")]


@pytest.mark.parametrize(
    ("setting", "worse", "better", "size"),
    [
        ("queue.read_ahead_kb", 0, 128, 0),
        ("queue.nr_requests", 64, 256, 0),
        ("queue.max_sectors_kb", 4, 512, 128),
        ("queue.write_cache", "write through", "write back", 0),
        ("card.cmdq_en", 0, 1, 0),
        ("mmc.ios.clock", "25000000 Hz", "50000000 Hz", 2),
        ("mmc.ios.bus_width", "2 (4 bits)", "3 (8 bits)", 2),
        ("mmc.ios.bus_width", "0 (1 bits)", "2 (4 bits)", 4),
        ("mmc.ios.timing_spec", "1 (mmc high-speed)", "9 (mmc HS200)", 0),
        ("mmc.ios.timing_spec", "7 (sd uhs DDR50)", "6 (sd uhs SDR104)", 0),
        ("spi_nor.spi0.0.read", "1S-1S-1S", "1S-1S-8S", 0),
        ("spi_nor.spi0.0.read", "8S-8S-8S", "8D-8D-8D", 0),
        ("spi_nor.spi0.0.max_hz", 25000000, 166666666, 0),
        ("ufs.gear", "HS_GEAR1", "HS_GEAR3", 0),
        ("ufs.lane", 1, 2, 2),
        ("ufs.rate", "HS_RATE_A", "HS_RATE_B", 0),
        ("usb.1-1.speed", 480, 5000, 5000 / 480),
        ("pci.0000:01:00.0.current_link_speed", "2.5 GT/s PCIe", "5.0 GT/s PCIe", 2),
        ("pci.0000:01:00.0.current_link_width", 1, 4, 4),
        ("net.speed", 100, 1000, 10),
        ("tester.net.duplex", "half", "full", 0),
        ("net.mtu", 1500, 9000, 0),
        ("ethtool-k.tcp-segmentation-offload", "off", "on", 0),
        ("ethtool-k.generic-segmentation-offload", "off [requested on]", "on", 0),
        ("tester.ethtool-k.tx-checksumming", "off", "on", 0),
        ("ethtool-k.hsr-fwd-offload", None, "on", 0),  # the driver has lost it
        ("tcp_wmem", "4096\t8192\t8192", "4096\t16384\t4194304", 512),
        ("tester.tcp_rmem", "4096\t4096\t4096", "4096\t131072\t6291456", 1536),
        ("cpu.online", "0", "0-1", 0),
        ("cpu.policy0.scaling_governor", "powersave", "performance", 0),
        ("cpu.policy0.scaling_max_freq", 500000, 1400000, 2.8),
        ("devfreq.fd00000.gpu.max_freq", 250, 500, 2),
        ("idle.cpu0.state1.disable", 0, 1, 0),
        ("group.io.max", "179:0 rbps=2000000 wbps=max", None, 0),
        ("group.memory.high", 1000000, 900000000, 0),
        ("tester.tc_filters", 4500, None, 0),
        ("sysctl.net/core.rmem_max", 4096, 212992, 0),
    ],
)
def test_a_difference_that_can_make_a_figure_better_alone_is_no_cause(setting, worse, better, size):
    assert differs(worse, better, setting) == [(setting, pytest.approx(size))]
    assert differs(better, worse, setting) == []


@pytest.mark.parametrize(
    ("setting", "here", "there"),
    [
        ("queue.scheduler", "[none] bfq", "none [bfq]"),
        ("ethtool-c.rx-usecs", 0, 3),
        ("ethtool-c.rx-usecs", None, 3),
        ("tc", "qdisc noqueue", "qdisc pfifo_fast"),
        ("crypto.cbc-aes", "cbc-aes-ce", "cbc-aes-sa2ul"),
        ("cpu.policy0.scaling_governor", "ondemand", "schedutil"),
        ("tcp_rmem", "4096 131072 6291456", "8192 65536 6291456"),
        ("usb.interface", "DRIVER=usb-storage", "DRIVER=uas"),
        ("mounted", "ext4 rw data=journal", "ext4 rw data=ordered"),
    ],
)
def test_either_value_of_a_setting_may_be_the_worse_one(setting, here, there):
    ((rule, _),), ((back, _),) = differs(here, there, setting), differs(there, here, setting)
    assert rule == back == setting


@pytest.mark.parametrize(
    ("setting", "here", "there"),
    [
        ("mmc.ios.clock", "0 Hz", "50000000 Hz"),
        ("net.speed", -1, 1000),
        ("crypto.cbc-aes", None, "cbc-aes-sa2ul"),
        ("queue.iosched.async_depth", None, 128),  # another scheduler has other files
        ("running", 4, 1),
        ("cpu.policy0.scaling_cur_freq", 1, 2),
        ("ethtool-k.tx-tcp-mangleid-segmentation", "off", "on"),
    ],
)
def test_what_nobody_set_or_nothing_uses_is_no_cause(setting, here, there):
    assert differs(here, there, setting) == differs(there, here, setting) == []


@pytest.mark.parametrize(("wait_ms", "slower"), [(1000, False), (250, False), (4000, True)])
def test_a_disk_that_answers_later(wait_ms, slower):
    there = State(counted={"disk.read_count": 100, "disk.read_ms": 1000})
    here = State(counted={"disk.read_count": 100, "disk.read_ms": wait_ms})
    assert [finding.size for finding in compared.disk(here, there, "r1")] == ([4.0] if slower else [])


@pytest.mark.parametrize(
    ("figure", "rate"),
    [
        (("uboot_emmc_raw", "1000000", "read_throughput", "KiB/s"), 400e6 / 1024),
        (("uboot_ospi", "2000000", "read_throughput", "KiB/s"), 1e9 / 3 / 1024),
        (("usbdev_hs_cdc_tcp", "8", "rx_throughput", "Mbit/s"), 425.984),
        (("mmcsd_raw_fio_1g", "4k", "read_throughput", "MB/s"), 104),
        (("eth_cpsw_udp_egress_0loss", "1518", "throughput", "Mbit/s"), 957.09 * 1.06),
        (("audio_capture", "24000", "throughput", "bit/s"), 768000 * 1.02),
        (("lmbench", "bw_mem-rd-16mb", "perf", "MB/s"), 3200),
        (("stream", "copy", "perf", "MB/s"), 3200),
        (("linpack", "linpack", "perf", "kflops"), 8e6),
    ],
)
def test_no_figure_is_above_the_best_mode_of_its_bus(figure, rate):
    *row, unit = figure
    can = buses.impossible(*row, unit=unit, mean=rate * 0.99, board="am64xx-hsevm")
    cannot = buses.impossible(*row, unit=unit, mean=rate * 1.02, board="am64xx-hsevm")
    assert (can, bool(cannot)) == ("", True)


def test_what_has_no_known_limit_is_never_impossible():
    assert buses.impossible("lmbench", "bw_mem-rd-1mb", "perf", unit="MB/s", mean=1e9, board="am64xx") == ""
    assert buses.impossible("emmc_ext4", "1m", "read_cpu_load", unit="%", mean=1e9) == ""
    assert buses.impossible("emmc_ext4", "1m", "read_throughput", unit="parsecs", mean=1e9) == ""


def result(shown, metric="read_throughput", value=100.0, unit="MB/s", **more):
    samples = (Sample(metric, value, unit, 0, 1),)
    return a_case(**{"benchmark": "x", "samples": samples, "state": State(shown=shown), **more})


def mmc(timing, hertz, lines, **more):
    return {
        "mmc.ios.clock": f"{hertz} Hz",
        "mmc.ios.timing_spec": timing,
        "mmc.ios.bus_width": f"3 ({lines} bits)",
        **more,
    }


USB = {"usb.usb1.speed": 10000, "usb.1-1.speed": 480, "usb.1-1.version": "2.00"}


@pytest.mark.parametrize(
    ("shown", "limit"),
    [
        (mmc("1 (mmc high-speed)", 52000000, 8), 52),
        (mmc("8 (mmc DDR52)", 52000000, 8), 104),
        (mmc("9 (mmc HS200)", 200000000, 8), 200),
        (mmc("10 (mmc HS400 enhanced strobe)", 200000000, 8), 400),
        (mmc("6 (sd uhs SDR104)", 208000000, 4), 104),
        (mmc("7 (sd uhs DDR50)", 50000000, 4), 50),
        (mmc("2 (sd high-speed)", 50000000, 4), 25),
        (mmc("9 (mmc HS200)", 200000000, 8, **{"mmc.ios.actual_clock": "100000000 Hz"}), 100),
        ({"spi_nor.spi0.0.read": "8D-8D-8D", "spi_nor.spi0.0.max_hz": 25000000}, 50),
        ({"spi_nor.spi0.0.read": "1S-1S-8S", "spi_nor.spi0.0.max_hz": 166666666}, 166.666666),
        ({"ufs.gear": "HS_GEAR3", "ufs.lane": 2, "ufs.rate": "HS_RATE_B"}, 1166.08),
        (USB, 53.248),
        ({**USB, "usb.1-1.speed": 5000}, 500),
        ({f"{PCI}current_link_speed": "8.0 GT/s PCIe", f"{PCI}current_link_width": 2}, 1969.23),
        ({f"{PCI}current_link_speed": "2.5 GT/s PCIe", f"{PCI}current_link_width": 1}, 250),
        ({**USB, "net.speed": 100, "net.mtu": 1500}, 53.248),
    ],
)
def test_limits_of_buses_in_their_modes(shown, limit):
    share = buses.shares(result(shown))["read_throughput"]
    assert share == pytest.approx(100 / limit, abs=1e-4)


@pytest.mark.parametrize(
    ("size", "mbit"), [(1472, 957.087), (18, 214.286), (64, 492.308), (1518, 924.482), (8192, 958.353)]
)
def test_the_wire_carries_so_much_of_each_datagram(size, mbit):
    shown = {"net.speed": 1000, "net.mtu": 1500}
    one = result(shown, "throughput", mbit, "Mbit/s", params={"datagram_size": size})
    assert buses.shares(one)["throughput"] == pytest.approx(1, abs=1e-4)


def test_both_ways_are_twice_the_line():
    shown = {"net.speed": 100, "net.mtu": 1500}
    one = result(shown, "throughput", 188.29, "Mbit/s", benchmark="eth_cpsw_tcp_bidir")
    assert buses.shares(one)["throughput"] == pytest.approx(1, abs=1e-4)


def test_more_than_a_bus_can_carry_is_refused():
    shown = mmc("1 (mmc high-speed)", 52000000, 8)
    assert buses.findings(result(shown, value=52.4)) == []
    (finding,) = buses.findings(result(shown, value=53))
    assert (finding.rule, finding.refuses) == ("impossible", True)
    assert buses.findings(result(shown, "read_cpu_load", 99, "%")) == []


@pytest.mark.parametrize(
    ("shown", "word"),
    [
        ({**mmc("9 (mmc HS200)", 200000000, 8), "mmc.ext_csd": "17", "mmc.caps2": "0x8040"}, ""),
        ({**mmc("9 (mmc HS200)", 200000000, 8), "mmc.ext_csd": "d7", "mmc.caps2": "0x8020"}, "HS400"),
        ({**mmc("1 (mmc high-speed)", 52000000, 8), "mmc.ext_csd": 57, "mmc.caps2": "0x20"}, "HS200"),
        ({**mmc("10 (mmc HS400)", 200000000, 8), "mmc.ext_csd": "d7", "mmc.caps2": "0x8020"}, ""),
        ({**USB, "usb.1-1.version": "2.10"}, "USB 3"),
        ({**USB, "usb.1-1.speed": 5000, "usb.1-1.version": "3.20"}, ""),
    ],
)
def test_a_better_mode_that_is_there_is_a_finding(shown, word):
    found = [f for f in buses.findings(result(shown, value=1.0)) if f.rule == "mode"]
    assert [word in finding.reason for finding in found] == ([True] if word else [])


@pytest.mark.parametrize(
    "shown",
    [
        {},
        mmc("x", 0, 8),
        mmc("9 (mmc HS200)", 200000000, 0),
        {"net.speed": 1000, "net.mtu": 20},
        {"net.speed": "fast"},
        {**USB, "usb.1-1.speed": 7},
        {"ufs.gear": "HS_GEAR3", "ufs.lane": "x"},
        {"spi_nor.a.read": "9D-9D-9D", "spi_nor.a.max_hz": 5},
    ],
)
def test_an_unknown_mode_has_no_limit(shown):
    assert buses.shares(result(shown)) == {}
