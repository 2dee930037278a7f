"""The runner with a real shell below it: what each failure costs, and what is kept."""

import os

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


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("garbage", "x holds no number"),
        ("0", "rate of 0 MB/s is not plausible"),
        ("101", "not plausible"),
        ("nan", "not plausible"),
        ("inf", "not plausible"),
    ],
)
def test_refused_twice_is_refused_without_a_number(lab, value, reason):
    runner = lab()
    result = runner.measure(make(measuring(f'echo {value} >"$OUT/x"')), CASE)
    assert result.status is Status.REFUSED
    assert result.samples == ()
    assert len(result.failures) == 2
    for failure in result.failures:
        assert reason in failure.message
        assert (runner.spool.folder / failure.raw).read_text().count(value) == 1
    assert runner.bench.abandoned == 0


def test_a_declared_metric_that_is_not_there_makes_the_case_partial(lab):
    other = Metric("other", Unit.PERCENT, Direction.LOWER, "Other")
    result = lab().measure(make(*FINE.steps(None, CASE, None), metrics=(RATE, other)), CASE)
    assert result.status is Status.PARTIAL


def test_a_repetition_that_fails_leaves_the_others(lab):
    steps = [
        measuring('echo 5 >"$OUT/x"', "write0", 0),
        measuring("echo no space >&2; exit 1", "write1", 1),
        measuring('echo 6 >"$OUT/x"', "write2", 2),
    ]
    benchmark = make(*steps, profiles={"quick": Profile((CASE,), 3)})
    result = lab().measure(benchmark, CASE)
    assert result.status is Status.PARTIAL
    assert [(s.repetition, s.value) for s in result.samples] == [(0, 5.0), (2, 6.0)]
    assert messages(result) == ["tool: write1 ended with status 1: no space"]


def test_a_missing_tool_fails_the_case_and_is_named(lab):
    runner = lab()
    result = runner.measure(make(measuring("true"), tools=("dd", "no-such-tool")), CASE)
    assert result.status is Status.FAILED
    assert result.failures[0].kind is Kind.TOOL
    assert "no-such-tool " in result.failures[0].message
    assert "dd" not in result.failures[0].message.split()
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


def test_clean_up_that_fails_is_recorded_and_the_figures_stay(lab):
    steps = [*FINE.steps(None, CASE, None), CleanUp("clean-up", "exit 1", 10)]
    result = lab().measure(make(*steps), CASE)
    assert result.values("rate") == [12.5]
    assert failed(result) == [(Kind.TOOL, "clean-up")]


@pytest.mark.parametrize(
    ("error", "kind", "abandoned"),
    [
        (ToolError("`fio` did not end within 10 s: it was interrupted"), Kind.TOOL, 0),
        (BoardError("kernel panic on the console"), Kind.BOARD, 1),
    ],
)
def test_a_failure_costs_its_case_only_and_a_boards_a_power_cycle(lab, error, kind, abandoned):
    # the wrapper is used for the facts first, then for the step
    runner = lab([None, error])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.FAILED
    assert result.failures[0].kind is kind
    assert runner.bench.abandoned == abandoned
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_a_console_that_was_away_costs_one_repetition_of_the_step(lab):
    runner = lab([None, Interrupted("the console was away for 1.0 s")])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert failed(result) == [(Kind.LAB, "write")]


def test_a_damaged_answer_is_noted_as_a_condition(lab):
    runner = lab([None, lambda reply: ShellReply(0, reply.text[:60])])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.conditions["fetched_again"] == 1


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
