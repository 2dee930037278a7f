"""The runner with a real shell below it: what each failure costs, and what is kept."""

import os
import re

import pytest

from evmperf.benchmarks.benchmark import Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Prepare
from evmperf.measure.bench import ShellReply
from evmperf.measure.runs.spool import read_run
from evmperf.model.errors import BoardError, Interrupted, Kind, LabError, ToolError
from evmperf.model.results import Direction, Metric, Status
from evmperf.model.units import Unit
from selftests.support.fakes import LocalShell, SteppingClock
from selftests.support.runners import CASE, FINE, RATE, failed, make, measuring, messages, on_spool, parse


def test_a_case_is_measured_and_on_the_spool(lab):
    runner = lab()
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.values("rate") == [12.5]
    assert result.samples[0].unit == "MB/s"
    assert "dd" in result.tools["dd"]
    assert on_spool(runner) == [result]
    assert (runner.spool.folder / result.raw[0]).exists()


def test_facts_of_the_board_are_gathered_once(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.measure(FINE, CASE)
    facts = read_run(runner.spool.folder).facts
    assert facts.kernel == os.uname().release
    assert set(facts.tools) == {"dd"}
    asked = runner.bench.shell().asked
    assert sum("uname -r" in command for command in asked) == 1


def test_a_tool_of_no_planned_case_is_asked_for(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    result = runner.measure(make(measuring('echo 7 >"$OUT/x"'), tools=("dd", "ls")), CASE)
    assert (result.status, "coreutils" in result.tools["ls"]) == (Status.MEASURED, True)


def test_refused_once_then_fine_is_measured_and_the_refusal_is_kept(lab, tmp_path):
    flag = tmp_path / "flag"
    step = measuring(f'[ -e {flag} ] && echo 7 >"$OUT/x" || echo garbage >"$OUT/x"; touch {flag}')
    runner = lab()
    result = runner.measure(make(step), CASE)
    assert result.status is Status.MEASURED
    assert result.values("rate") == [7.0]
    (failure,) = result.failures
    assert (failure.kind, failure.step, failure.refused) == (Kind.TOOL, "write", True)
    assert (runner.spool.folder / failure.raw).read_text() == "garbage\n"
    assert on_spool(runner) == [result]


def says(number):
    """Steps of a tool that prints this."""
    return [measuring(f'echo {number} >"$OUT/x"')]


WRITE = FINE.steps(None, CASE, None)
THRICE = [
    measuring('echo 5 >"$OUT/x"', "write0", 0),
    measuring("echo no space >&2; exit 1", "write1", 1),
    measuring('echo 6 >"$OUT/x"', "write2", 2),
]
CLEAN_UP = CleanUp("clean-up", "exit 1", 10)
HUNG = ToolError("`fio` did not end within 10 s: it was interrupted")
PANIC, AWAY = BoardError("kernel panic on the console"), Interrupted("the console was away for 1.0 s")
IMPLAUSIBLE = [r"tool: rate of \S+ MB/s is not plausible.*"] * 2
COSTS = {
    # what fails: the steps, what their answers become, status, rates, and failures
    "no number": (says("garbage"), None, "refused", [], ["tool: x holds no number"] * 2),
    "zero": (says(0), None, "refused", [], IMPLAUSIBLE),
    "above the range": (says(101), None, "refused", [], IMPLAUSIBLE),
    "no finite number": (says("nan"), None, "refused", [], IMPLAUSIBLE),
    "an endless number": (says("inf"), None, "refused", [], IMPLAUSIBLE),
    "one repetition": (THRICE, None, "partial", [5, 6], ["tool: write1 ended with status 1: no space"]),
    "the clean-up": ([*WRITE, CLEAN_UP], None, "partial", [12.5], ["tool: clean-up.*"]),
    "the tool hangs": (WRITE, HUNG, "failed", [], ["tool: `fio` did not end .*"]),
    "the board panics": (WRITE, PANIC, "failed", [], ["board: kernel panic .*"]),
    "the console is away": (WRITE, AWAY, "measured", [12.5], ["lab: the console was away .*"]),
    "an answer is cut": (WRITE, lambda r: ShellReply(0, r.text[:60]), "measured", [12.5], []),
}


@pytest.mark.parametrize("what", COSTS)
def test_what_a_failure_costs(lab, what):
    steps, act, status, rates, failures = COSTS[what]
    runner = lab([None, act])  # the wrapper is used for the facts first, then for the step
    profiles = {"quick": Profile((CASE,), 3 if what == "one repetition" else 1)}
    result = runner.measure(make(*steps, profiles=profiles), CASE)
    assert (result.status, result.values("rate")) == (status, rates), result.failures
    assert len(result.failures) == len(failures)
    assert all(map(re.fullmatch, failures, messages(result))), messages(result)
    for failure in (failure for failure in result.failures if failure.refused and failure.raw):
        assert (runner.spool.folder / failure.raw).read_text().strip() in steps[0].command
    assert result.conditions.get("fetched_again", 0) == (what == "an answer is cut")
    assert runner.bench.abandoned == (what == "the board panics"), "a power cycle for the board's alone"
    assert runner.measure(FINE, CASE).status is Status.MEASURED, "it costs its case only"


def test_a_metric_that_is_not_there_makes_the_case_partial_and_a_tool_is_named(lab):
    runner = lab()
    other = Metric("other", Unit.PERCENT, Direction.LOWER, "Other")
    assert runner.measure(make(*WRITE, metrics=(RATE, other)), CASE).status is Status.PARTIAL
    (missing,) = messages(runner.measure(make(*WRITE, tools=("dd", "no-such-tool")), CASE))
    assert re.match(r"tool: (?!.*\bdd\b).*no-such-tool ", missing)
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_clean_up_is_done_after_a_failed_preparation_and_nothing_else(lab, tmp_path):
    steps = [
        Prepare("prepare", "echo no such device; exit 3", 10),
        measuring(f"touch {tmp_path}/measured"),
        CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10),
    ]
    result = lab().measure(make(*steps), CASE)
    assert result.status is Status.FAILED
    assert failed(result) == [(Kind.TOOL, "prepare")]
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "measured").exists()


def test_after_a_power_cycle_the_wrapper_is_installed_again(lab, tmp_path):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.bench._shell = LocalShell(tmp_path / "rebooted")  # /tmp is empty after a boot
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_a_board_that_cannot_be_reached_is_broken_and_not_tried_again(lab):
    runner = lab(reach=[BoardError("no login prompt within 180 s")])
    first = runner.measure(FINE, CASE)
    second = runner.measure(FINE, CASE)
    assert first.status is second.status is Status.FAILED
    assert [kind for kind, _ in failed(first)] == [Kind.BOARD]
    assert second.failures[0].message.startswith("not tried: ")
    assert first.failures[0].message in second.failures[0].message
    assert runner.bench.reached == 1
    assert on_spool(runner) == [first, second]


@pytest.mark.parametrize("where", ["reach", "step"])
def test_a_broken_lab_ends_the_run_after_the_result_is_safe(lab, where):
    error = LabError("the power switch does not answer")
    runner = lab(reach=[error]) if where == "reach" else lab([None, error])
    with pytest.raises(LabError, match="the power switch does not answer"):
        runner.measure(FINE, CASE)
    (result,) = on_spool(runner)
    assert result.status is Status.FAILED
    assert [kind for kind, _ in failed(result)] == [Kind.LAB]


def test_a_broken_lab_keeps_what_the_case_had_measured(lab):
    steps = [measuring('echo 5 >"$OUT/x"', "write0"), measuring('echo 6 >"$OUT/x"', "write1", 1)]
    runner = lab([None, None, LabError("the console went away")])
    with pytest.raises(LabError):
        runner.measure(make(*steps, profiles={"quick": Profile((CASE,), 2)}), CASE)
    (result,) = on_spool(runner)
    assert result.status is Status.PARTIAL
    assert result.values("rate") == [5.0]


# U-Boot


class Uboot:
    files = None

    def __init__(self, *replies):
        self.replies = list(replies)

    def run(self, command, timeout_s):
        return self.replies.pop(0)


def uboot_benchmark():
    step = Measure("read", "time mmc read", 10, parse=lambda o: parse({"x": o["console"]}))
    return make(step, place=Place.UBOOT, tools=())


def test_a_uboot_step_gives_its_console_text_and_takes_the_time_of_the_runners_clock(lab):
    runner = lab(shell=Uboot(ShellReply(0, "42")), clock=SteppingClock(7.0))
    result = runner.measure(uboot_benchmark(), CASE)
    assert (result.values("rate"), result.tool_s) == ([42.0], 7.0)


@pytest.mark.parametrize("last", ["no card present", "0 blocks read: ERROR\n\ntime: 1.587 seconds"])
def test_a_failed_uboot_command_is_named_with_its_last_line(lab, last):
    runner = lab(shell=Uboot(ShellReply(1, f"switch to partitions #0, ERROR\n{last}")))
    result = runner.measure(uboot_benchmark(), CASE)
    assert messages(result) == [f"tool: read ended with status 1: {last.splitlines()[0]}"]
