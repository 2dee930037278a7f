"""Looks at the board around cases: this machine's own kernel is the board's."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from evmperf.benchmarks.benchmark import Place
from evmperf.benchmarks.step import Measure
from evmperf.measure import shellstep
from evmperf.measure.around import STATE
from evmperf.measure.bench import ShellReply
from evmperf.measure.state import look
from evmperf.model.errors import BoardError, Kind, LabError, ToolError
from evmperf.model.results import MARKS, Status
from evmperf.publish.report.shape import text_table
from selftests.support.runners import CASE, FINE, RATE, make, make_rows, measuring, on_spool, parse


class Steps:
    """Real steps; `acts` are functions of what looks said, or errors, used up one a look."""

    def __init__(self, *acts):
        self.acts = list(acts)
        self.looks = []

    install = staticmethod(shellstep.install)

    def run(self, shell, command, timeout_s, **given):
        if not given.get("label", "").startswith(STATE):
            return shellstep.run(shell, command, timeout_s, **given)
        act = self.acts.pop(0) if self.acts else None
        if isinstance(act, Exception):
            raise act
        self.looks.append(command)
        output = shellstep.run(shell, command, timeout_s, **given)
        said = output.files[look.FILE]
        return replace(output, files={look.FILE: act(said) if act else said})


def adding(line):
    return lambda said: f"{said}{line}\n"


def hog(ticks):
    """A process that has run for so long, on a CPU that was busy with it."""

    def change(said):
        def busier(match):
            return f"{match[1]}{int(match[2]) + ticks}"

        busy, changed = re.subn(r"^(/proc/stat cpu +)(\d+)", busier, said, count=1, flags=re.MULTILINE)
        assert changed
        return f"{busy}/proc/4711/stat {ticks} a hog\n"

    return change


def skewed(rate):
    def change(said):
        first, rest = said.split("\n", 1)
        return f"/proc/uptime {float(first.split()[1]) * rate:.2f} 0.0\n{rest}"

    return change


@pytest.fixture
def looking(lab, tmp_path):
    """A function that makes a runner that looks around, and its steps."""

    def make_runner(*acts):
        steps = Steps(*acts)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        return lab(results=folder, steps=steps, looks=True), steps

    return make_runner


def test_the_look_after_a_case_is_the_one_before_the_next(looking):
    runner, steps = looking()
    first = runner.measure(FINE, CASE)
    asked = len(runner.bench._shell.asked)
    second = runner.measure(FINE, CASE)
    assert len(steps.looks) == 3
    assert len(runner.bench._shell.asked) == asked + 2  # the tool, and the look after it
    assert not any("awk" in command for command in steps.looks)  # the text goes there apart, once
    assert first.status is second.status is Status.MEASURED
    online = Path("/sys/devices/system/cpu/online").read_text().strip()
    assert str(first.state.shown["cpu.online"]) == online
    assert first.state.counted["context_switches"] > 0
    assert first.state.seconds >= 0
    assert second.state.clock is not None
    assert on_spool(runner) == [first, second]


ALL = Measure("all", 'echo 5 >"$OUT/x"', 10, parse=parse, shared="all")


@pytest.mark.parametrize(("rate", "fast", "took_s"), [(20, True, 0.3), (0.4, False, 1.5)])
def test_a_board_with_a_wrong_clock_has_no_figures(looking, rate, fast, took_s):
    runner, _ = looking(*[skewed(rate)] * 3)
    result = runner.measure(make(measuring(f'sleep {took_s}; echo 12.5 >"$OUT/x"')), CASE)
    assert result.status is Status.REFUSED
    assert result.samples == ()
    assert result.raw
    assert {(f.kind, f.refused, f.step) for f in result.failures} == {(Kind.BOARD, True, "state")}
    assert len(result.failures) == 2  # it was tried once more
    assert (result.state.clock[0] > 1.01) is fast
    assert (result.state.clock[1] < 0.99) is not fast


SPEED = "/sys/devices/x/0000:01:00.0/current_link_speed"
LINKS = [adding(f"{SPEED} {speed} GT/s PCIe") for speed in ("8.0", "2.5", "2.5")]


def test_what_changes_during_a_case_refuses_it_once(looking):
    runner, steps = looking(*LINKS)
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.values("rate") == [12.5]
    (failure,) = result.failures
    assert (failure.refused, failure.step) == (True, "state")
    assert "8.0 GT/s PCIe to 2.5 GT/s PCIe" in failure.message
    assert steps.acts == []


@pytest.mark.parametrize(
    ("acts", "status", "says"),
    [
        ([hog(100), hog(9000)], Status.MEASURED, r"a hog \(4711\).* took"),
        ([skewed(20)] * 3, Status.REFUSED, ""),
    ],
)
def test_rows_that_share_an_execution_share_its_state_its_marks_and_its_refusal(looking, acts, status, says):
    step = Measure("all", 'sleep 0.3; echo 5 >"$OUT/x"', 10, parse=parse, shared="all")
    rows = make_rows(lambda case: [step])
    runner, steps = looking(*acts)
    results = [runner.measure(rows, case) for case in rows.cases("quick")]
    assert [result.status for result in results] == [status] * 3
    assert [result.state is None for result in results] == [False, True, True]
    assert len(steps.looks) == 2
    assert all(re.search(says, result.conditions.get(MARKS, "")) for result in results)
    assert results[0].state.beside.get("a hog (4711)", 0) == (89.0 if says else 0)


def test_a_spoiled_row_that_others_share_is_not_run_again(looking):
    runner, steps = looking(*LINKS[:2])
    result = runner.measure(make(ALL, tools=()), CASE)
    assert result.status is Status.REFUSED
    assert len(steps.looks) == 2


@pytest.mark.parametrize("error", [ToolError("it hung"), BoardError("it is gone")])
def test_a_look_that_fails_costs_no_figure(looking, error):
    runner, _ = looking(None, error)
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.failures == ()
    assert result.state.missing == str(error)
    assert runner.bench.abandoned == isinstance(error, BoardError)
    assert runner.measure(FINE, CASE).state.seconds is not None


def test_a_lab_that_breaks_at_the_look_ends_the_run_with_the_figures_safe(looking):
    runner, _ = looking(None, LabError("the console server is gone"))
    with pytest.raises(LabError):
        runner.measure(FINE, CASE)
    (result,) = on_spool(runner)
    assert result.values("rate") == [12.5]


def test_nobody_looks_at_uboot(looking):
    runner, steps = looking()
    runner.measure(make(measuring("echo 12.5"), place=Place.UBOOT, tools=()), CASE)
    assert steps.looks == []


def test_figures_have_their_share_of_the_bus_and_impossible_ones_are_refused(looking):
    lines = "/sys/devices/x/1-1/speed {}".format
    metric = replace(RATE, name="read_throughput")
    bench = make(
        Measure("write", 'echo 50 >"$OUT/x"', 10, parse=lambda o: parse(o, metric=metric.name)),
        metrics=(metric,),
    )
    runner, _ = looking(*[adding(lines(480))] * 2)
    result = runner.measure(bench, CASE)
    assert result.status is Status.MEASURED
    assert result.state.shares == {"read_throughput": pytest.approx(50 / 53.248, abs=1e-4)}
    assert "94% of USB, 480 Mbit/s" in text_table([result])
    runner, _ = looking(*[adding(lines(12))] * 3)
    result = runner.measure(bench, CASE)
    assert result.status is Status.REFUSED
    assert [failure.refused for failure in result.failures] == [True, True]


def test_a_case_that_hangs_has_the_state_before_and_after_it(looking):
    runner, steps = looking()
    result = runner.measure(make(Measure("write", "sleep 9", 1, parse=parse)), CASE)
    assert result.status is Status.FAILED
    assert len(steps.looks) == 2
    assert result.state.shown["cpu.online"] is not None
    assert result.state.seconds > 0.5
    assert not result.state.missing


def test_a_case_whose_board_is_gone_has_the_state_before_it(looking):
    runner, _ = looking()
    gone = BoardError("it is gone")

    class Gone(Steps):
        def run(self, shell, command, timeout_s, **given):
            if "sleep 9" in command:
                raise gone
            return super().run(shell, command, timeout_s, **given)

    runner._machines.steps = runner._around._steps = Gone()
    result = runner.measure(make(Measure("write", "sleep 9", 1, parse=parse)), CASE)
    assert result.state.shown["cpu.online"] is not None
    assert result.state.missing == str(gone)


MMC_INFO = """Device: mmc@fa10000
Manufacturer ID: 13
Bus Speed: 52000000
Mode: MMC High Speed (52MHz)
Bus Width: 8-bit
"""


def test_u_boot_says_the_mode_of_the_card_that_its_rows_used(looking):
    runner, _ = looking()
    shell = runner.bench._shell
    shell.when, shell.scripted = "mmc info", [lambda reply: ShellReply(0, MMC_INFO)]
    result = runner.measure(make(measuring("echo 12.5"), place=Place.UBOOT, tools=()), CASE)
    assert result.state.shown["uboot.mmc.Mode"] == "MMC High Speed (52MHz)"
    assert result.state.shown["uboot.mmc.Bus_Width"] == "8-bit"
    assert shell.asked[-1] == "mmc info"
