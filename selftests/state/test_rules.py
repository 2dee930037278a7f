"""What spoils a figure, what slows a whole machine, and which differences can cost a figure."""

import os
from pathlib import Path

import msgspec
import pytest
import yaml

from evmperf.explain import answers, compared, facts
from evmperf.measure.hostload import counters, slowness
from evmperf.measure.state import machine, rules
from evmperf.measure.state.finding import Finding
from evmperf.model.state import State
from selftests.support import seeds

CASES, DIFFERENCES, WEIGHED = (
    yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text())
    for name in ("rules", "differences", "weighed")
)
NAMES = {"benchmark": "b", "run": "r"}
ALWAYS = CASES.pop("always")
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


@pytest.mark.parametrize(("setting", "worse", "better", "size"), DIFFERENCES["one way"])
def test_a_difference_that_can_make_a_figure_better_alone_is_no_cause(setting, worse, better, size):
    assert differs(worse, better, setting) == [(setting, pytest.approx(size))]
    assert differs(better, worse, setting) == []


@pytest.mark.parametrize("which", ["either way", "neither way"])
def test_both_values_may_be_the_worse_one_or_none(which):
    for setting, here, there in DIFFERENCES[which]:
        known = [setting] if which == "either way" else []
        for values in ((here, there), (there, here)):
            assert [rule for rule, _ in differs(*values, setting)] == known


@pytest.mark.parametrize(("setting", "here", "there", "table", "back"), DIFFERENCES["set back"])
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


# Which causes are able to carry a loss, and what two runs' machines have in common


@pytest.mark.parametrize("name", WEIGHED["weighed"])
def test_which_causes_are_able_to_carry_a_loss(name):
    case = WEIGHED["weighed"][name]
    findings = [Finding(rule, rule, **more) for rule, more in case["findings"].items()]
    found = answers.weigh(findings, case["times"], "read_throughput", NAMES)
    assert [{one.rule: one.part} for one in found] == case["causes"]
    assert case.get("says", "") in str(found[0])


@pytest.mark.parametrize("name", WEIGHED["compared"])
def test_what_two_runs_machines_differ_in(name):
    case = WEIGHED["compared"][name]
    here, there = (msgspec.convert(case[side], State) for side in ("here", "there"))
    found = list(getattr(compared, case["by"])(here, there, *case.get("with", ())))
    assert [[one.rule, one.size] for one in found] == [case[key] for key in case.keys() & {"found"}]
    assert all(case.get("says", "") in one.reason for one in found)
    assert all(one.symptom == (one.rule == "machine") for one in found)


def test_two_lost_segments_explain_nothing():
    lost = State(counted={"tcp_sent": 825, "tcp_sent_again": 2}, seconds=12.0)
    assert rules.judge(lost) == []
    more = State(counted={"tcp_sent": 8250, "tcp_sent_again": 12}, seconds=60.0)
    (one,) = rules.judge(more)
    assert (one.rule, one.size) == ("loss", pytest.approx(1 + 50 * 12 / 8250))
    assert answers.weigh([one], 9.0, "read_throughput", NAMES) == []


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
