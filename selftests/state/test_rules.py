"""What spoils a figure, what slows a whole machine, and which differences can cost a figure."""

from pathlib import Path

import msgspec
import pytest
import yaml

from evmperf.explain import answers, facts
from evmperf.measure.state import machine, rules
from evmperf.model.state import State
from selftests.support import seeds

CASES, DIFFERENCES = (
    yaml.safe_load(Path(__file__).with_name(name).read_text()) for name in ("rules.yaml", "differences.yaml")
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
