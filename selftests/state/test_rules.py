"""What spoils a figure, what slows a whole machine, and which differences can cost a figure."""

from pathlib import Path

import msgspec
import pytest
import yaml

from evmperf.explain import answers, facts
from evmperf.measure.state import machine, rules
from evmperf.model.state import State
from selftests.support import seeds

CASES = yaml.safe_load(Path(__file__).with_name("rules.yaml").read_text())
NAMES = {"benchmark": "b", "run": "r"}
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
ALWAYS = {
    "spoilt": HEALTHY,
    "machine": {"cpu.online": "0-1", "cpu.present": "0-1", "shell.Cpus_allowed_list": "0-1"},
    "facts": {"cpu.online": "0-3", "cpu.policy0.cpuinfo_max_freq": 1400000},
}
"""What the boards of a list show where a case does not say otherwise."""


@pytest.mark.parametrize(
    ("by", "case"),
    [
        pytest.param(by, case, id=f"{by}-{case.get('rule', 'none')}")
        for by, cases in CASES.items()
        for case in cases
    ],
)
def test_a_state_has_one_finding_or_none(by, case):
    shown = ALWAYS[by] | case["state"].get("shown", {})
    state = msgspec.convert({"seconds": 10.0, **case["state"], "shown": shown}, State)
    if by == "facts":
        found = list(facts.findings(state, case.get("driver", "emmc"), case.get("board", "")))
    else:
        found = (rules.judge if by == "spoilt" else machine.judge)(state, ["netserver"])
    named = [case["rule"]] if "rule" in case else []
    assert [one.rule for one in found] == named
    for one in found:
        assert case.get("says", "") in one.reason
        assert one.refuses == case.get("refuses", False)
        if "size" in case:
            assert (one.whole, one.size) == (True, pytest.approx(case["size"]))
    for metric in {"of", "but"} & case.keys():
        carried = answers.weigh(found, 3.0, case[metric], NAMES)
        assert [cause.rule for cause in carried] == (named if metric == "of" else [])


def test_a_board_without_cpufreq_is_told_so_and_a_virtual_one_not():
    shown = State(shown={"cpu.online": "0-3"})
    assert [one.rule for one in facts.findings(shown, "system", "am62l-evm")] == ["no cpufreq"]
    assert list(facts.findings(shown, "system", "virtual-evm")) == []


def test_what_a_file_system_was_mounted_with_is_that_of_the_case():
    """Its last step says it, so the look before a case has the file system of the case before."""
    journal, plain = "ext4 rw,data=journal", "vfat rw"
    after, before = ({"mounted": value} for value in (journal, plain))
    assert [f.rule for f in facts.findings(State(shown=before, changed=after), "emmc")] == ["journal"]
    assert list(facts.findings(State(shown=after, changed=before), "emmc")) == []
    here, there = (State(changed={"mounted": f"ext4 {word}"}) for word in ("nodelalloc", "delalloc"))
    assert [f.rule for f in facts.between(here, there, "good")] == ["mounted"]


DRIVERS = ("emmc", "mmcsd", "ospi", "spi", "usb", "pcie", "cpsw", "rt", "system")


@seeds.needs("real/consoles")
def test_no_line_of_a_real_boot_is_a_cause():
    """Two say "mmc0: error -110 whilst initialising SD card", which slows no card that was measured."""
    for file in (f for n in ("", "-2", "-3") for f in seeds.real(f"consoles{n}", "*.txt")):
        log = tuple(line for line in file.read_text(errors="replace").splitlines() if "] " in line)
        told = [one for driver in DRIVERS for one in facts.findings(State(log=log), driver, "am62p5-evm")]
        assert told == [], file.name


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


EITHER = [
    ("queue.scheduler", "[none] bfq", "none [bfq]"),
    ("ethtool-c.rx-usecs", 0, 3),
    ("ethtool-c.rx-usecs", None, 3),
    ("tc", "qdisc noqueue", "qdisc pfifo_fast"),
    ("crypto.cbc-aes", "cbc-aes-ce", "cbc-aes-sa2ul"),
    ("cpu.policy0.scaling_governor", "ondemand", "schedutil"),
    ("tcp_rmem", "4096 131072 6291456", "8192 65536 6291456"),
    ("usb.interface", "DRIVER=usb-storage", "DRIVER=uas"),
    ("mounted", "ext4 rw data=journal", "ext4 rw data=ordered"),
]
"""Settings of which either value may be the worse one."""
NEITHER = [
    ("mmc.ios.clock", "0 Hz", "50000000 Hz"),
    ("net.speed", -1, 1000),
    ("crypto.cbc-aes", None, "cbc-aes-sa2ul"),
    ("queue.iosched.async_depth", None, 128),  # another scheduler has other files
    ("running", 4, 1),
    ("cpu.policy0.scaling_cur_freq", 1, 2),
    ("ethtool-k.tx-tcp-mangleid-segmentation", "off", "on"),
]
"""What nobody set, or nothing uses."""


@pytest.mark.parametrize(("setting", "here", "there"), [*EITHER, *NEITHER])
def test_both_values_may_be_the_worse_one_or_none(setting, here, there):
    known = [setting] if (setting, here, there) in EITHER else []
    for values in ((here, there), (there, here)):
        assert [rule for rule, _ in differs(*values, setting)] == known


@pytest.mark.parametrize(
    ("setting", "here", "there", "table", "back"),
    [
        ("sysctl.vm.swappiness", 10, 60, "emmc_raw_fio_1g", None),  # nothing was paged
        ("sysctl.net/core.netdev_max_backlog", 5000, 1000, "eth_tcp", None),  # more hurts nothing
        ("sysctl.vm.dirty_ratio", 5, 20, "emmc_raw_fio_1g", None),  # there is no page cache
        ("sysctl.vm.dirty_ratio", 5, 20, "emmc_ext4_fio_1g", "echo '20' >/proc/sys/vm/dirty_ratio"),
        ("queue.scheduler", "[none] bfq", "none [bfq]", "", "echo 'bfq' >$q/queue/scheduler"),
        ("ethtool-g.RX", 64, 256, "", "ethtool -G INTERFACE rx 256"),
        (
            "tc",
            "qdisc pfifo 8001: root refcnt 2 limit 2p",
            "qdisc pfifo_fast 0: root refcnt 2 bands 3",
            "",
            "tc qdisc del dev INTERFACE root 2>/dev/null; true",
        ),
    ],
)
def test_a_difference_can_touch_the_figure_and_says_how_it_is_set_back(setting, here, there, table, back):
    states = (State(shown={setting: value}) for value in (here, there))
    found = list(facts.between(*states, "good", driver="emmc", table=table))
    assert [(one.rule, one.otherwise) for one in found] == [(setting, True)] * (back is not None)
    assert not back or found[0].back[1] == f"run:{back}"


def test_a_setting_has_the_command_that_puts_it_back():
    states = (State(shown={"sysctl.net/core.rmem_max": value}) for value in (4096, 212992))
    (one,) = facts.between(*states, "good")
    assert one.proof.format_map(NAMES) == (
        "evmperf ab BOARD.yaml -k b --b 'run:echo \"212992\" >/proc/sys/net/core/rmem_max'"
    )
