"""What slows a whole machine, and which causes are able to carry a loss."""

import os

import pytest

from evmperf.explain import answers, compared, facts
from evmperf.measure.hostload import counters, slowness
from evmperf.measure.state import machine, rules
from evmperf.measure.state.finding import Finding
from evmperf.model.state import State
from selftests.support import seeds

CPUS = {"cpu.online": "0-1", "cpu.present": "0-1", "shell.Cpus_allowed_list": "0-1"}
BUSY = {"cpu_user": 900, "cpu_system": 100, "shell.own_ticks": 300, "shell.thread_ticks": 50}


@pytest.mark.parametrize(
    ("state", "rule", "size", "evidence"),
    [
        (
            {
                "shown": {**CPUS, "group.cpu.max": "50000 100000"},
                "counted": {"group.throttled_usec": 4_000_000},
            },
            "quota",
            4.0,
            "0.5 CPUs",
        ),
        ({"shown": {**CPUS, "shell.Cpus_allowed_list": 1}}, "pinned", 0.0, "1 of 2 CPUs"),
        ({"shown": {**CPUS, "cpu.online": 0}}, "offline", 2.0, "only 1 of 2"),
        ({"counted": {"host.run_ms": 2000, "host.wait_ms": 6000}}, "host", 4.0, "75%"),
        ({"counted": {"cpu_idle": 50, "cpu_steal": 50}}, "host", 2.0, "50%"),
        ({"counted": {**BUSY, "forks": 900}}, "beside", 1 / (1 - 0.65), "900 processes"),
        ({"beside": {"hog (7)": 5.0}}, "beside", 2.0, "50% of a CPU"),
        # It reaped a child that had run for a minute before the case.
        ({"counted": BUSY, "beside": {"init (1)": 76.1}}, "beside", 1 / (1 - 0.65), "65% of a CPU"),
        ({"counted": {"tester.cpu_user": 990, "tester.cpu_idle": 10}}, "tester", None, "of the tester"),
        (
            {"counted": {"disk.read_sectors": 1 << 18, "shell.read_bytes": 1 << 26}},
            "shared disk",
            None,
            "128 MiB of reads",
        ),
        (
            {
                "counted": {
                    "percpu.0_interrupt": 900,
                    "percpu.1_idle": 950,
                    "irq.41.8000000.ethernet.cpu0": 90000,
                    "irq.9.mmc0.cpu0": 20,
                },
                "shown": {"irq.41.8000000.ethernet.affinity": 0},
            },
            "interrupts",
            0.0,
            "9000 a second of 41.8000000.ethernet (smp_affinity_list 0)",
        ),
    ],
)
def test_what_slows_a_whole_machine(state, rule, size, evidence):
    (one,) = machine.judge(State(**{"seconds": 10.0, **state}))
    if size is not None:
        assert (one.whole, one.size) == (True, pytest.approx(size))
    assert one.rule == rule
    assert evidence in one.reason


@pytest.mark.parametrize(
    "state",
    [
        {"shown": {**CPUS, "group.cpu.max": "50000 100000"}},  # it was never held back
        {"counted": {"host.run_ms": 2000, "host.wait_ms": 100}},
        # Its threads waited for each other: a hog on the board takes all CPUs that it has.
        {"counted": {"host.run_ms": 2000, "host.wait_ms": 1000, "host.busy_ms": 2300}},
        {"counted": {**BUSY, "forks": 9}},  # nothing began
        {"counted": {**BUSY, "shell.own_ticks": 960, "forks": 900}},  # it was the case's
        {"beside": {"netserver (7)": 5.0}},
        {"counted": {"disk.read_sectors": 1 << 18, "shell.read_bytes": 120 << 20}},
        {
            "changed": {"mounted": "ext4 rw,relatime data=journal"},
            "counted": {"disk.write_sectors": 1 << 18, "shell.write_bytes": 64 << 20},
        },
        {"counted": {"tester.cpu_user": 90, "tester.cpu_idle": 910}},
        {"counted": {"percpu.0_interrupt": 900, "percpu.1_idle": 10}},  # both are busy
        {},
    ],
)
def test_a_machine_that_nothing_slows(state):
    assert machine.judge(State(**{"seconds": 10.0, **state}), ["netserver"]) == []


@pytest.mark.parametrize(
    ("shown", "rule", "metric", "other"),
    [
        ({"tracing.current_tracer": "function"}, "tracer", "read_throughput", ""),
        ({"tracing.set_event": "sched:sched_switch"}, "tracer", "read_throughput", ""),
        ({"shell.TracerPid": 41}, "debugger", "read_throughput", ""),
        ({"shell.nice": 19}, "priority", "read_throughput", ""),
        ({"disk.current_clocksource": "jiffies"}, "clock source", "latency", ""),
        ({"sysctl.vm.dirty_bytes": 16384}, "write cache", "write_throughput", "read_throughput"),
        ({"mounted": "ext4 rw,relatime rw,data=journal,"}, "journal", "write_throughput", "read_throughput"),
        ({"tester.tc_filters": 9000}, "filters", "throughput", ""),
    ],
)
def test_one_fact_is_a_cause_of_the_metrics_that_it_concerns(shown, rule, metric, other):
    shown = {"cpu.policy0.cpuinfo_max_freq": 1400000, **shown}
    found = list(facts.findings(State(shown=shown), "emmc"))
    assert [one.rule for one in found] == [rule]
    assert [cause.rule for cause in answers.weigh(found, 3.0, metric, NAMES)] == [rule]
    assert not other or answers.weigh(found, 3.0, other, NAMES) == []


NAMES = {"benchmark": "b", "run": "r"}


def weighed(times, *findings):
    return [(cause.rule, cause.part) for cause in answers.weigh(findings, times, "read_throughput", NAMES)]


def test_a_cause_must_be_able_to_carry_the_loss():
    small, half, all_of_it = (
        Finding(name, name, size=size) for name, size in zip("abc", (1.1, 3, 9), strict=True)
    )
    assert weighed(9.0, half, small, all_of_it) == [("c", None), ("b", 0.5)]
    assert [str(c) for c in answers.weigh([half], 9.0, "x", NAMES)] == [
        "b (up to 3.00 times): explains a part of it"
    ]


def test_the_whole_machine_comes_before_a_device():
    host = Finding("host", "host", size=20.0, whole=True)
    disk, slower = Finding("device", "disk", size=30.0), Finding("machine", "all", size=25.0, whole=True)
    setting = Finding("queue.scheduler", "s")
    assert weighed(20.0, disk, setting, slower, host) == [
        ("host", None),
        ("queue.scheduler", None),
        ("machine", None),
    ]


def test_other_load_that_carries_the_loss_leaves_no_blame_for_the_disk():
    load, disk = Finding("beside", "load", size=2.2, whole=True), Finding("device", "disk", size=4.2)
    assert weighed(2.0, disk, load) == [("beside", None)]
    assert weighed(9.0, disk, load) == [("beside", 0.359), ("device", 0.653)]


def test_what_spoils_comes_before_what_is_set_otherwise_and_symptoms_come_last():
    load = Finding("beside", "a hog", whole=True)  # it starves all others: no bound
    look = Finding("machine", "slow", size=9.0, whole=True, symptom=True)
    bound, free = (Finding(n, n, size=s, otherwise=True) for n, s in (("net.mtu", 4.0), ("tc", 0.0)))
    assert [rule for rule, _ in weighed(4.0, look, free, bound, load)] == [
        "beside",
        "net.mtu",
        "tc",
        "machine",
    ]


def test_two_lost_segments_explain_nothing():
    lost = State(counted={"tcp_sent": 825, "tcp_sent_again": 2}, seconds=12.0)
    assert rules.judge(lost) == []
    more = State(counted={"tcp_sent": 8250, "tcp_sent_again": 12}, seconds=60.0)
    (one,) = rules.judge(more)
    assert (one.rule, one.size) == ("loss", pytest.approx(1 + 50 * 12 / 8250))
    assert weighed(9.0, one) == []


def test_what_a_file_system_was_mounted_with_is_that_of_the_case():
    """Its last step says it, so the look before a case has the file system of the case before."""
    journal, plain = "ext4 rw,data=journal", "vfat rw"
    after, before = ({"mounted": value} for value in (journal, plain))
    assert [f.rule for f in facts.findings(State(shown=before, changed=after), "emmc")] == ["journal"]
    assert list(facts.findings(State(shown=after, changed=before), "emmc")) == []
    here, there = (State(changed={"mounted": f"ext4 {word}"}) for word in ("nodelalloc", "delalloc"))
    assert [f.rule for f in facts.between(here, there, "good")] == ["mounted"]


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


def test_another_disk_at_work_is_said_and_the_cases_own_is_not():
    counted = {"disk.read_sectors": 10**6, "disks.mmcblk0.read_sectors": 10**6 + 8, "shell.thread_ticks": 870}
    assert list(compared.other_disks(State(counted=counted, seconds=10.0))) == []
    resync = {"disks.nvme0n1.read_sectors": 1173504, "disks.sda.write_sectors": 1173504}
    (one,) = compared.other_disks(State(counted={**counted, **resync}, seconds=10.0))
    assert "nvme0n1 573 MiB, sda 573 MiB" in one.reason
    assert "8.7 s" in one.reason


def test_the_wait_of_writes_explains_no_reads():
    there = State(counted={"disk.write_count": 100, "disk.write_ms": 100})
    here = State(counted={"disk.write_count": 100, "disk.write_ms": 5000})
    found = list(compared.disk(here, there, "good"))
    assert [cause.rule for cause in answers.weigh(found, 3.0, "write_throughput", NAMES)] == ["device"]
    assert answers.weigh(found, 3.0, "read_throughput", NAMES) == []


def test_what_holds_in_both_runs_explains_what_it_is_more():
    both = (Finding("host", "waited for 75%", size=4.0), Finding("host", "waited for 20%", size=1.25))
    assert compared.beyond(both[:1], both[1:])[0].size == pytest.approx(3.2)
    assert compared.beyond(both[1:], both[:1]) == []


def test_a_setting_has_the_command_that_puts_it_back():
    states = (State(shown={"sysctl.net/core.rmem_max": value}) for value in (4096, 212992))
    (one,) = facts.between(*states, "good")
    assert one.proof.format_map(NAMES) == (
        "evmperf ab BOARD.yaml -k b --b 'run:echo \"212992\" >/proc/sys/net/core/rmem_max'"
    )


def test_the_time_that_a_boards_own_qemu_waits_for_its_host(tmp_path):
    for pid, (parent, name, *threads) in enumerate(
        [
            (1, "python lab", "8000000 0 1"),
            (10, "/lib/ld.so /bin/qemu-system-aarch64 -M virt", "5000000 7000000 9", "1000000 2000000 3"),
            (1, "/bin/qemu-system-aarch64 of another board", "9000000 9000000 1"),
        ],
        10,
    ):
        (tmp_path / f"{pid}/task").mkdir(parents=True)
        (tmp_path / f"{pid}/cmdline").write_text(name.replace(" ", "\0"))
        for number, text in enumerate(threads):
            (tmp_path / f"{pid}/task/{number}").mkdir()
            (tmp_path / f"{pid}/task/{number}/schedstat").write_text(text)
        (tmp_path / f"{pid}/stat").write_text(f"{pid} (a name) S {parent} 1")
    (tmp_path / "10/fd").mkdir()
    (tmp_path / "10/fd/3").symlink_to("socket:[4711]")
    (tmp_path / "net").mkdir()
    row = "0: 0100007F:3039 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1"
    (tmp_path / "net/tcp").write_text(f"  sl  local_address\n   {row}\n")
    (tmp_path / "stat").write_text("cpu  4 1 2 900 900 1 2 0 0 0\ncpu0 4 1 2 900 900 1 2 0 0 0\n")
    assert counters(0x3039, tmp_path) == {"host.run_ms": 6, "host.wait_ms": 9, "host.busy_ms": 100}
    assert counters(0x3040, tmp_path) == {}
    assert counters(0x3039, tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("loadavg", "busy"),
    [
        ("0.20 0.10 0.05 1/200 4242", 1.0),
        ("8.00 4.00 2.00 1/200 4242", 8.0),  # what ran a moment ago runs on
        ("0.20 4.00 2.00 9/200 4242", 8.0),  # what has just begun is not in a mean of a minute
        ("900.0 900.0 900.0 9/2000 4242", 40.0),
        ("?", 1.0),
    ],
)
def test_a_host_is_slower_by_the_processes_that_wait_for_each_processor(tmp_path, monkeypatch, loadavg, busy):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    (tmp_path / "loadavg").write_text(loadavg)
    assert slowness(tmp_path) == max(busy / 2, 1.0)
    assert 1.0 <= slowness() <= 20.0


POLICY = {"cpu.online": "0-3", "cpu.policy0.cpuinfo_max_freq": 1400000}
LOG = "[    1.937214] "
FORMS = [
    # What users or TI found in the end (docs/why.md), in the form of the kernel's sources and of U-Boot's.
    ("am62p5-evm", "emmc", {"shown": {"soc.revision": "SR1.0"}}, "mode"),
    ("am64xx-hsevm", "emmc", {"log": (LOG + "mmc0: tuning execution failed: -5",)}, "tuning"),
    ("am64xx-hsevm", "emmc", {"log": (LOG + "mmc0: running CQE recovery",)}, "command queue"),
    ("j7200-evm", "ospi", {"shown": {"spi_nor.spi0.0.read": "1S-1S-1S"}}, "one line"),
    ("am62x-sk", "ospi", {"log": (LOG + "cadence-qspi fc40000.spi: Pattern not found.",)}, "PHY calibration"),
    ("am62x-sk", "ospi", {"shown": {"flash.ospi.rootfs": "0x0370000"}}, "PHY calibration"),
    ("am62x-sk", "ospi", {"log": (LOG + "spi-nand spi0.0: read 1S-8S-8S at 133 MHz",)}, "NAND mode"),
    ("am62x-sk", "spi", {"counted": {"irq.31.20100000.spi.cpu0": 900000}}, "interrupt transfers"),
    ("am62x-sk", "system", {"shown": {"edac.mc0": "k3-ddrss"}}, "inline ECC"),
    ("am62l-evm", "rt", {"shown": {"rng_current": "optee-rng"}}, "random numbers"),
    ("am64xx-hsevm", "cpsw", {"shown": {"ethtool-c.rx-usecs": 0}}, "pacing"),
    ("am64xx-hsevm", "cpsw", {"shown": {"ethtool-k.rx-checksumming": "off [requested on]"}}, "offload"),
    (
        "am62x-sk",
        "usb",
        {
            "shown": {
                "udc.31000000.usb.current_speed": "high-speed",
                "udc.31000000.usb.maximum_speed": "super-speed",
            }
        },
        "USB speed",
    ),
    (
        "j721e-evm",
        "pcie",
        {
            "log": (
                LOG + "nvme 0000:01:00.0: 7.876 Gb/s available PCIe bandwidth, "
                "limited by 8.0 GT/s PCIe x1 link at 0000:00:00.0",
            )
        },
        "PCIe",
    ),
    ("am62x-sk", "alsa", {"counted": {"pressure_io_us": 4_000_000}}, "waiting for I/O"),
    ("am62x-sk", "emmc", {"shown": {"uboot.mmc.Mode": "MMC High Speed (52MHz)"}}, "boot loader's mode"),
    ("", "eth", {"shown": {"tc": "qdisc pfifo 8001: root refcnt 2 limit 2p"}}, "short queue"),
    ("", "eth", {"shown": {"tester.net.mtu": 600}}, "small MTU"),
    ("", "eth", {"shown": {"net.duplex": "half"}}, "half duplex"),
    ("", "eth", {"shown": {"net.master": "br0"}}, "bridge"),
    ("", "eth", {"shown": {"net.gso_max_segs": 1}}, "small segments"),
    ("", "eth", {"shown": {"group.io.max": "179:0 rbps=2000000 wbps=max"}}, "I/O limit"),
    ("", "eth", {"shown": {"env.OPENSSL_armcap": "0"}}, "environment"),
]


@pytest.mark.parametrize(("board", "driver", "state", "rule"), FORMS)
def test_causes_that_people_ended_with(board, driver, state, rule):
    state = {**state, "shown": {**POLICY, **state.get("shown", {})}}
    assert {one.rule for one in facts.findings(State(**state, seconds=10.0), driver, board)} == {rule}


def test_a_board_without_cpufreq_is_told_so_and_a_virtual_one_not():
    shown = State(shown={"cpu.online": "0-3"})
    assert [one.rule for one in facts.findings(shown, "system", "am62l-evm")] == ["no cpufreq"]
    assert list(facts.findings(shown, "system", "virtual-evm")) == []


@pytest.mark.parametrize(
    ("board", "driver", "shown"),
    [
        ("am62p5-evm", "emmc", {"soc.revision": "SR1.2"}),
        ("am62x-sk", "ospi", {"flash.ospi.tiboot3": "0x80000", "flash.ospi.phypattern": "0x40000"}),
        ("am62x-sk", "ospi", {"spi_nor.spi0.0.read": "8D-8D-8D"}),
        ("am62x-sk", "usb", {"udc.a.current_speed": "high-speed", "udc.a.maximum_speed": "high-speed"}),
        ("am64xx-hsevm", "cpsw", {"ethtool-c.rx-usecs": 250, "ethtool-k.rx-checksumming": "on"}),
        ("j7200-evm", "emmc", {"uboot.mmc.Mode": "HS400 (200MHz)", "uboot.mmc.Bus_Width": "8-bit DDR"}),
        (
            "",
            "emmc",
            {"tracing.current_tracer": "nop", "shell.TracerPid": 0, "shell.nice": 0, "shell.policy": 0},
        ),
        ("", "emmc", {"sysctl.vm.dirty_bytes": 0, "sysctl.vm.dirty_ratio": 20}),
        ("", "emmc", {"disk.current_clocksource": "arch_sys_counter", "tc_filters": 3}),
        ("", "emmc", {"mounted": "ext4 rw,relatime rw,data=ordered,nodelalloc,"}),
        ("", "eth", {"tc": "qdisc pfifo 8001: root refcnt 2 limit 1000p", "net.mtu": 1500}),
        ("", "eth", {"net.gso_max_segs": 65535}),
    ],
)
def test_a_board_as_it_should_be_has_no_cause(board, driver, shown):
    assert list(facts.findings(State(shown={**POLICY, **shown}), driver, board)) == []


DRIVERS = ("emmc", "mmcsd", "ospi", "spi", "usb", "pcie", "cpsw", "rt", "system")


@seeds.needs("real/consoles")
def test_no_line_of_a_real_boot_is_a_cause():
    """Two say "mmc0: error -110 whilst initialising SD card", which slows no card that was measured."""
    for file in (f for n in ("", "-2", "-3") for f in seeds.real(f"consoles{n}", "*.txt")):
        log = tuple(line for line in file.read_text(errors="replace").splitlines() if "] " in line)
        told = [one for driver in DRIVERS for one in facts.findings(State(log=log), driver, "am62p5-evm")]
        assert told == [], file.name


def test_more_packets_on_the_cases_own_port_are_no_storm():
    """A small MTU sends six times as many packets for the same bytes."""

    def carried(eth1, eth0):
        counted = {"port.eth1.rx": eth1, "port.eth0.rx": eth0}
        return State(shown={"net.mtu": 256}, counted=counted, seconds=1.0)

    assert list(compared.ports(carried(9000, 10), carried(1500, 10))) == []
    (storm,) = compared.ports(carried(400, 9000), carried(1500, 10))
    assert "eth0 carried 9000" in storm.reason


def test_a_machine_that_is_slower_on_a_busy_host_has_the_host_as_its_cause():
    well = State(shown={"look_ms": 160})
    ill = State(shown={"look_ms": 300}, counted={"host.run_ms": 1000, "host.wait_ms": 3000})
    (one,) = compared.machine(ill, well, "good", 0.0)
    assert (one.rule, one.size) == ("host", 300 / 160)
    (one,) = compared.machine(State(shown={"look_ms": 300}), well, "good", 0.0)
    assert one.rule == "machine"
    # A process that reads the disk beside the case has made the looks slow: the host waited for little.
    (one,) = compared.machine(State(shown={"look_ms": 6000}, counted=ill.counted), well, "good", 0.0)
    assert (one.rule, one.symptom) == ("machine", True)
    # Of the clock that both were taken by.
    near, far = State(shown={"look_ms": 40}), State(shown={"look_ms": 20})
    assert list(compared.machine(near, far, "good", 1.0)) == []
    # To read 2000 filters takes long on any machine.
    filtered = State(shown={"look_ms": 300, "tc_filters": 2000})
    assert list(compared.machine(filtered, well, "good", 1.0)) == []
