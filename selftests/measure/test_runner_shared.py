"""The runner's finer ways: shared executions, searches, the tester, rows with their own metrics."""

import functools

import pytest

from evmperf.benchmarks.benchmark import Profile
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Prepare, SearchStep, Trial, Where
from evmperf.model.errors import BoardError, Kind, LabError, RefusedOutput
from evmperf.model.results import Case, Reading, Status
from selftests.support.fakes import LocalShell
from selftests.support.runners import DELAY, A, B, C, failed, make_rows, parse

# Shared executions


def table(tmp_path, command='printf 5 >"$OUT/a"; printf 6 >"$OUT/b"; printf 7 >"$OUT/c"'):
    """A tool that prints all rows in one execution, and notes that it was executed."""
    counted = f"echo x >>{tmp_path}/count; {command}"

    def steps(case):
        row = functools.partial(parse, name=case.label)
        return [Measure("table", counted, 10, parse=row, shared="table")]

    return make_rows(steps)


def executions(tmp_path):
    return (tmp_path / "count").read_text().count("x")


def test_a_tool_that_prints_all_rows_is_executed_once_and_its_raw_files_are_kept_once(lab, tmp_path):
    runner, benchmark = lab(), table(tmp_path)
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [result.values("rate") for result in results] == [[5.0], [6.0], [7.0]]
    assert [result.status for result in results] == [Status.MEASURED] * 3
    assert executions(tmp_path) == 1
    assert len({sample.time_ns for result in results for sample in result.samples}) == 1
    assert results[0].raw == results[1].raw == results[2].raw
    kept = [path for path in (runner.spool.folder / "raw").rglob("*") if path.is_file()]
    assert len(kept) == len(results[0].raw) == 3
    assert {path.read_text() for path in kept} == {"5", "6", "7"}


def test_keys_keep_repetitions_and_drivers_apart(lab, tmp_path):
    command = f'echo x >>{tmp_path}/count; echo 5 >"$OUT/x"'

    def steps(case):
        return [Measure(f"t{n}", command, 10, parse=parse, repetition=n, shared=f"t{n}") for n in (0, 1)]

    profiles = {"quick": Profile((A, B, C), 2)}
    runner = lab()
    for case in (A, B):
        assert runner.measure(make_rows(steps, profiles=profiles), case).status is Status.MEASURED
    assert executions(tmp_path) == 2
    runner.measure(make_rows(steps, profiles=profiles, driver="mmcsd"), A)
    assert executions(tmp_path) == 4


OUTPUTS = 'printf 5 >"$OUT/a"; printf {} >"$OUT/b"; printf 7 >"$OUT/c"'
AGAIN = f"if [ -e FLAG ]; then {OUTPUTS.format(6)}; else {OUTPUTS.format('x')}; touch FLAG; fi"
SHARED = {
    # what the tool does: statuses of three rows, how many failures each, and how often it is executed
    "is refused once": (AGAIN, ["measured", "measured", "measured"], [0, 1, 0], 2),
    "is refused for a row": (OUTPUTS.format(0), ["measured", "refused", "measured"], [0, 2, 0], 2),
    "is refused for every row": ('echo garbage >"$OUT/a"', ["refused", "refused", "refused"], [2, 1, 1], 2),
    "fails": ("echo no such card; exit 3", ["failed", "failed", "failed"], [1, 1, 1], 1),
}


@pytest.mark.parametrize("what", SHARED)
def test_a_shared_tool_that(lab, tmp_path, what):
    command, statuses, failures, executed = SHARED[what]
    runner, benchmark = lab(), table(tmp_path, command.replace("FLAG", f"{tmp_path}/flag"))
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [result.status for result in results] == statuses
    assert [len(result.failures) for result in results] == failures
    rates = {case.label: result.values("rate") for case, result in zip((A, B, C), results, strict=True)}
    whole = {"a": [5.0], "b": [6.0], "c": [7.0]}
    measured = [status == "measured" for status in statuses]
    assert rates == {name: whole[name] * was for name, was in zip("abc", measured, strict=True)}
    assert executions(tmp_path) == executed
    if what == "fails":
        first, second = (result.failures[0].message for result in results[:2])
        assert second == f"not run again after another case: {first}"


def test_a_shared_tool_that_killed_the_board_costs_one_power_cycle(lab, tmp_path):
    runner = lab([None, BoardError("kernel panic on the console")])
    benchmark = table(tmp_path)
    first, second = (runner.measure(benchmark, case) for case in (A, B))
    assert first.failures[0].kind is Kind.BOARD
    assert first.failures[0].message in second.failures[0].message
    assert second.failures[0].message != first.failures[0].message
    assert runner.bench.abandoned == 1


# Searches


def trial(value):
    return Trial(f"try {value}", f'echo {value} >"$OUT/x"', 10, parse=parse)


def searching(trials, *after):
    """A benchmark that is one search, and what follows it."""
    return make_rows(lambda case: [SearchStep("search", trials, 30, 3), *after])


def test_a_search_is_sent_what_it_tried_and_its_trials_are_no_samples(lab):
    sent = []

    def trials():
        for value in (40, 20):
            sent.append((yield trial(value)))
        return [Reading("rate", 30.0)]

    result = lab().measure(searching(trials), A)
    assert sent == [[Reading("rate", 40.0)], [Reading("rate", 20.0)]]
    assert result.status is Status.MEASURED
    assert result.values("rate") == [30.0]
    assert result.conditions["trials"] == [{"step": "try 40", "rate": 40.0}, {"step": "try 20", "rate": 20.0}]
    assert len(result.raw) == 2


@pytest.mark.parametrize("found", [True, False])
def test_a_trial_may_leave_the_plausible_range_but_what_is_found_may_not(lab, found):
    def trials():
        (reading,) = yield trial(500)
        if not found:
            raise RefusedOutput("even the lowest rate lost frames")
        return [reading]

    result = lab().measure(searching(trials), A)
    assert result.conditions["trials"] == [{"step": "try 500", "rate": 500.0}]
    assert (result.status, result.samples) == (Status.REFUSED, ())
    assert failed(result) == [(Kind.TOOL, "search")]
    assert ("not plausible" if found else "lowest rate") in result.failures[0].message


@pytest.mark.parametrize(
    ("command", "failures"), [("exit 1", ["failing"]), ('echo garbage >"$OUT/x"', ["failing", "failing"])]
)
def test_a_trial_that_fails_ends_the_search_and_what_follows_is_done(lab, tmp_path, command, failures):
    asked = []

    def trials():
        yield trial(4)
        asked.append((yield Trial("failing", command, 10, parse=parse)))
        return [Reading("rate", 4.0)]

    result = lab().measure(searching(trials, CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10)), A)
    assert asked == []
    assert result.samples == ()
    assert [failure.step for failure in result.failures] == failures
    assert [found["step"] for found in result.conditions["trials"]] == ["try 4"]
    assert (tmp_path / "cleaned").exists()


def test_a_failed_preparation_leaves_of_a_search_its_cleaning_up_only(lab, tmp_path):
    def trials():
        raise AssertionError("nobody shall begin")

    def steps(case):
        return [
            Prepare("prepare", "exit 1", 10),
            SearchStep("search", trials, 30, 3),
            CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10),
        ]

    result = lab().measure(make_rows(steps), A)
    assert (tmp_path / "cleaned").exists()
    assert "trials" not in result.conditions


def test_a_parser_that_runs_out_is_an_error_and_no_quiet_end(lab):
    def careless(outputs: Outputs) -> list[Reading]:
        return [next(iter(()))]

    with pytest.raises(StopIteration):
        lab().measure(make_rows(lambda case: [Measure("x", "true", 10, parse=careless)]), A)


# The tester


def test_a_step_of_the_tester_runs_there_in_a_folder_of_the_run(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    where = Measure("where", 'pwd >/dev/null; echo 9 >"$OUT/x"', 10, parse=parse, where=Where.TESTER)
    on_board = Prepare("board", "true", 10)
    result = runner.measure(make_rows(lambda case: [on_board, where], tester_tools=("dd",)), A)
    assert result.values("rate") == [9.0], result.failures
    assert "dd" in result.tools["tester dd"]
    asked = len(tester.asked)
    runner.measure(make_rows(lambda case: [on_board, where], tester_tools=("dd",)), A)
    assert len(tester.asked) == asked + 1  # its step; the tools' versions are known
    folder = tmp_path / "beside" / "evmperf-fake-1"
    assert [path.name for path in folder.glob("step-*")]
    assert not any('echo 9 >"$OUT/x"' in command for command in runner.bench.shell().asked)
    runner.close()
    assert not folder.exists()


def test_a_tester_that_nothing_was_asked_of_is_left_alone(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    runner.measure(make_rows(lambda case: [Measure("x", 'echo 9 >"$OUT/x"', 10, parse=parse)]), A)
    runner.close()
    assert tester.asked == []


@pytest.mark.parametrize("there", [True, False])
def test_a_tester_without_the_tool_or_no_tester_is_a_broken_lab(lab, tmp_path, there):
    runner = lab(tester=LocalShell(tmp_path / "beside") if there else None)
    with pytest.raises(LabError, match=r"no-such-tool .*tester" if there else "no tester"):
        runner.measure(make_rows(lambda case: [], tester_tools=("dd", "no-such-tool")), A)


# Rows with their own metrics

OWN = Case("a", {}, (DELAY,))


def test_a_row_has_its_own_unit_and_range_and_lacks_what_others_have(lab):
    def steps(case):
        metric = "delay" if case.metrics else "rate"
        return [Measure("x", 'echo 5 >"$OUT/x"', 10, parse=lambda o: parse(o, "x", metric))]

    runner = lab()
    first, second = (runner.measure(make_rows(steps), case) for case in (OWN, B))
    assert (first.status, first.samples[0].unit) == (Status.MEASURED, "us")
    assert (second.status, second.samples[0].unit) == (Status.MEASURED, "MB/s")


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [("rate", 5, "declares no metric 'rate'"), ("delay", 50, "delay of 50 us is not plausible")],
)
def test_a_row_with_its_own_metrics_takes_no_others(lab, metric, value, reason):
    step = Measure("x", f'echo {value} >"$OUT/x"', 10, parse=lambda o: parse(o, "x", metric))
    result = lab().measure(make_rows(lambda case: [step]), OWN)
    assert result.status is Status.REFUSED
    assert reason in result.failures[0].message
