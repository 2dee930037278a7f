"""Which causes are able to carry a loss, and what two runs' machines have in common."""

import os

import pytest

from evmperf.explain import answers, compared
from evmperf.measure.hostload import counters, slowness
from evmperf.measure.state import rules
from evmperf.measure.state.finding import Finding
from evmperf.model.state import State

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


def test_another_disk_at_work_is_said_and_the_cases_own_is_not():
    counted = {"disk.read_sectors": 10**6, "disks.mmcblk0.read_sectors": 10**6 + 8, "shell.thread_ticks": 870}
    assert list(compared.other_disks(State(counted=counted, seconds=10.0))) == []
    resync = {"disks.nvme0n1.read_sectors": 1173504, "disks.sda.write_sectors": 1173504}
    (one,) = compared.other_disks(State(counted={**counted, **resync}, seconds=10.0))
    assert "nvme0n1 573 MiB, sda 573 MiB" in one.reason
    assert "8.7 s" in one.reason


@pytest.mark.parametrize(("wait_ms", "slower"), [(1000, False), (250, False), (4000, True)])
def test_a_disk_that_answers_later(wait_ms, slower):
    there = State(counted={"disk.read_count": 100, "disk.read_ms": 1000})
    here = State(counted={"disk.read_count": 100, "disk.read_ms": wait_ms})
    assert [finding.size for finding in compared.disk(here, there, "r1")] == ([4.0] if slower else [])


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
