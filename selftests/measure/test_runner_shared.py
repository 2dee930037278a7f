"""The runner's finer ways: shared executions, searches, the tester, rows with their own metrics."""

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import (
    CleanUp,
    Measure,
    MeasurePower,
    MeterWindow,
    Outputs,
    Prepare,
    Search,
    Trial,
    Where,
)
from evmperf.measure.runner import Runner
from evmperf.model.errors import BoardError, Kind, LabError, RefusedOutput, ToolError, UsageError
from evmperf.model.results import Case, Direction, Metric, Reading, Status
from evmperf.model.run import Run
from evmperf.model.units import Unit
from evmperf.runs.spool import Spool
from evmperf.tools import meter
from selftests.support.boardfiles import fake_board
from selftests.support.fakes import LocalBench, LocalShell, SteppingClock

RATE = Metric("rate", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Rate", low=1.0, high=100.0)
DELAY = Metric("delay", Unit.MICROSECOND, Direction.LOWER, "Delay", low=0.1, high=10.0)
A, B, C = Case("a"), Case("b"), Case("c")


@pytest.fixture
def board(tmp_path):
    return fake_board(tmp_path / "fake.yaml", "emmc")


@pytest.fixture
def lab(tmp_path, board):
    """A function that makes a runner; keywords go to the bench."""

    def make_runner(scripted=(), **bench):
        shell = LocalShell(tmp_path / "board", scripted)
        spool = Spool(tmp_path, Run("fake-1", "fake-evm", "quick"))
        return Runner(LocalBench(board, shell, **bench), spool, "quick", ["dd"])

    return make_runner


def make(steps, **changes):
    """A benchmark of three rows whose steps come from a function of the case."""
    given = {
        "name": "emmc_fake", "driver": "emmc", "title": "Fake", "section": ("Fake",),
        "metrics": (RATE,), "profiles": {"quick": Profile((A, B, C))}, "place": Place.SHELL,
        "steps": lambda board, case, profile: steps(case),
    }  # fmt: skip
    return Benchmark(**{**given, **changes})


def number(outputs, name="x", metric="rate"):
    try:
        return [Reading(metric, float(outputs[name]))]
    except (KeyError, ValueError):
        raise RefusedOutput(f"{name} holds no number", outputs.get(name, "")) from None


def messages(result):
    return [f"{f.kind}: {f.message}" for f in result.failures]


# Shared executions


def table(tmp_path, command='printf 5 >"$OUT/a"; printf 6 >"$OUT/b"; printf 7 >"$OUT/c"'):
    """A tool that prints all rows in one execution, and notes that it was executed."""
    counted = f"echo x >>{tmp_path}/count; {command}"

    def steps(case):
        parse = lambda outputs: number(outputs, case.label)  # noqa: E731  # binds the case
        return [Measure("table", counted, 10, parse=parse, shared="table")]

    return make(steps)


def executions(tmp_path):
    return (tmp_path / "count").read_text().count("x")


def test_a_tool_that_prints_all_rows_is_executed_once(lab, tmp_path):
    runner, benchmark = lab(), table(tmp_path)
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [result.values("rate") for result in results] == [[5.0], [6.0], [7.0]]
    assert [result.status for result in results] == [Status.MEASURED] * 3
    assert executions(tmp_path) == 1


def test_samples_of_one_execution_have_its_time_and_its_raw_files_which_are_kept_once(
    lab, tmp_path
):
    runner, benchmark = lab(), table(tmp_path)
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert len({sample.time_ns for result in results for sample in result.samples}) == 1
    assert len(results[0].raw) == 3
    assert results[0].raw == results[1].raw == results[2].raw
    kept = [path for path in (runner.spool.folder / "raw").rglob("*") if path.is_file()]
    assert len(kept) == 3
    contents = {(runner.spool.folder / name).read_text() for name in results[2].raw}
    assert contents == {"5", "6", "7"}


def test_keys_keep_repetitions_and_drivers_apart(lab, tmp_path):
    command = f'echo x >>{tmp_path}/count; echo 5 >"$OUT/x"'

    def steps(case):
        return [
            Measure(f"t{n}", command, 10, parse=number, repetition=n, shared=f"t{n}")
            for n in (0, 1)
        ]

    profiles = {"quick": Profile((A, B, C), 2)}
    runner = lab()
    for case in (A, B):
        assert runner.measure(make(steps, profiles=profiles), case).status is Status.MEASURED
    assert executions(tmp_path) == 2
    runner.measure(make(steps, profiles=profiles, driver="mmcsd"), A)
    assert executions(tmp_path) == 4


def test_a_refused_shared_output_is_executed_again_and_the_good_one_serves_all(lab, tmp_path):
    flag = tmp_path / "flag"
    good = 'printf 5 >"$OUT/a"; printf 6 >"$OUT/b"; printf 7 >"$OUT/c"'
    bad = good.replace("5", "garbage")
    benchmark = table(tmp_path, f"if [ -e {flag} ]; then {good}; else {bad}; touch {flag}; fi")
    runner = lab()
    first, second = (runner.measure(benchmark, case) for case in (A, B))
    assert (first.status, first.values("rate")) == (Status.MEASURED, [5.0])
    assert messages(first) == ["tool: a holds no number"]
    assert (second.status, second.failures) == (Status.MEASURED, ())
    assert executions(tmp_path) == 2


def test_a_row_that_is_refused_leaves_the_other_rows_their_numbers(lab, tmp_path):
    benchmark = table(tmp_path, 'printf 5 >"$OUT/a"; printf 0 >"$OUT/b"; printf 7 >"$OUT/c"')
    runner = lab()
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [r.status for r in results] == [Status.MEASURED, Status.REFUSED, Status.MEASURED]
    assert executions(tmp_path) == 2


def test_an_output_that_is_refused_for_every_row_is_executed_twice_in_all(lab, tmp_path):
    benchmark = table(tmp_path, 'echo garbage >"$OUT/a"')
    runner = lab()
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [result.status for result in results] == [Status.REFUSED] * 3
    assert [len(result.failures) for result in results] == [2, 1, 1]
    assert executions(tmp_path) == 2


def test_a_shared_tool_that_fails_is_not_run_again_for_the_next_row(lab, tmp_path):
    benchmark = table(tmp_path, "echo no such card; exit 3")
    runner = lab()
    first, second = (runner.measure(benchmark, case) for case in (A, B))
    assert messages(first) == ["tool: table ended with status 3: no such card"]
    assert messages(second) == [
        "tool: not run again after another case: table ended with status 3: no such card"
    ]
    assert executions(tmp_path) == 1


def test_a_shared_tool_that_killed_the_board_costs_one_power_cycle(lab, tmp_path):
    runner = lab([None, BoardError("kernel panic on the console")])
    benchmark = table(tmp_path)
    first, second = (runner.measure(benchmark, case) for case in (A, B))
    assert first.failures[0].kind is Kind.BOARD
    assert "not run again after another case: kernel panic" in second.failures[0].message
    assert runner.bench.abandoned == 1


# Searches


def trial(value):
    return Trial(f"try {value}", f'echo {value} >"$OUT/x"', 10, parse=number)


def searching(trials, *after):
    """A benchmark that is one search, and what follows it."""
    return make(lambda case: [Search("search", trials, 30, 3), *after])


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
    assert result.conditions["trials"] == [
        {"step": "try 40", "rate": 40.0}, {"step": "try 20", "rate": 20.0},
    ]  # fmt: skip
    assert len(result.raw) == 2


def test_a_trial_may_leave_the_plausible_range_but_what_is_found_may_not(lab):
    def trials():
        (reading,) = yield trial(500)
        return [reading]

    result = lab().measure(searching(trials), A)
    assert result.conditions["trials"] == [{"step": "try 500", "rate": 500.0}]
    assert (result.status, result.samples) == (Status.REFUSED, ())
    assert [failure.step for failure in result.failures] == ["search"]
    assert "not plausible" in result.failures[0].message


def test_a_search_that_finds_nothing_is_refused_with_its_reason(lab):
    def trials():
        yield trial(4)
        raise RefusedOutput("even the lowest rate lost frames")

    result = lab().measure(searching(trials), A)
    assert result.status is Status.REFUSED
    assert messages(result) == ["tool: even the lowest rate lost frames"]


@pytest.mark.parametrize(
    ("command", "failures"),
    [("exit 1", ["failing"]), ('echo garbage >"$OUT/x"', ["failing", "failing"])],
)
def test_a_trial_that_fails_ends_the_search_and_what_follows_is_done(
    lab, tmp_path, command, failures
):
    asked = []

    def trials():
        yield trial(4)
        asked.append((yield Trial("failing", command, 10, parse=number)))
        return [Reading("rate", 4.0)]

    result = lab().measure(
        searching(trials, CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10)), A
    )
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
            Search("search", trials, 30, 3),
            CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10),
        ]

    result = lab().measure(make(steps), A)
    assert (tmp_path / "cleaned").exists()
    assert "trials" not in result.conditions


def test_a_parser_that_runs_out_is_an_error_and_no_quiet_end(lab):
    def careless(outputs: Outputs) -> list[Reading]:
        return [next(iter(()))]

    with pytest.raises(StopIteration):
        lab().measure(make(lambda case: [Measure("x", "true", 10, parse=careless)]), A)


# The tester


def test_a_step_of_the_tester_runs_there_in_a_folder_of_the_run(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    where = Measure(
        "where", 'pwd >/dev/null; echo 9 >"$OUT/x"', 10, parse=number, where=Where.TESTER
    )
    on_board = Prepare("board", "true", 10)
    result = runner.measure(make(lambda case: [on_board, where], tester_tools=("dd",)), A)
    assert result.values("rate") == [9.0], result.failures
    assert "dd" in result.tools["tester dd"]
    folder = tmp_path / "beside" / "evmperf-fake-1"
    assert (folder / "step").exists()
    assert not any('echo 9 >"$OUT/x"' in command for command in runner.bench.shell().asked)
    runner.close()
    assert not folder.exists()


def test_a_tester_that_nothing_was_asked_of_is_left_alone(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    runner.measure(make(lambda case: [Measure("x", 'echo 9 >"$OUT/x"', 10, parse=number)]), A)
    runner.close()
    assert tester.asked == []


def test_a_tool_that_the_tester_lacks_is_a_broken_lab(lab, tmp_path):
    runner = lab(tester=LocalShell(tmp_path / "beside"))
    with pytest.raises(LabError, match="no-such-tool is not on the tester's PATH"):
        runner.measure(make(lambda case: [], tester_tools=("dd", "no-such-tool")), A)


def test_no_tester_at_all_is_a_broken_lab(lab):
    with pytest.raises(LabError, match="no tester"):
        lab().measure(make(lambda case: [], tester_tools=("dd",)), A)


# Rows with their own metrics


def test_a_row_has_its_own_unit_and_range_and_lacks_what_others_have(lab):
    own = Case("a", {}, (DELAY,))

    def steps(case):
        metric = "delay" if case.metrics else "rate"
        return [Measure("x", 'echo 5 >"$OUT/x"', 10, parse=lambda o: number(o, "x", metric))]

    benchmark = make(steps, profiles={"quick": Profile((own, B))})
    runner = lab()
    first, second = (runner.measure(benchmark, case) for case in (own, B))
    assert (first.status, first.samples[0].unit) == (Status.MEASURED, "us")
    assert (second.status, second.samples[0].unit) == (Status.MEASURED, "MB/s")


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [("rate", 5, "declares no metric 'rate'"), ("delay", 50, "delay of 50 us is not plausible")],
)
def test_a_row_with_its_own_metrics_takes_no_others(lab, metric, value, reason):
    own = Case("a", {}, (DELAY,))
    step = Measure("x", f'echo {value} >"$OUT/x"', 10, parse=lambda o: number(o, "x", metric))
    result = lab().measure(make(lambda case: [step]), own)
    assert result.status is Status.REFUSED
    assert reason in result.failures[0].message


# What a board cannot have


def with_absent(tmp_path, absent):
    file = tmp_path / "absent.yaml"
    lines = "\n".join(f"        {word}: {reason}" for word, reason in absent.items())
    file.write_text(
        "targets:\n  main:\n    features: [emmc]\n    options:\n"
        "      board: {name: x, title: X, description: X, profile: quick}\n"
        f"      boot: {{medium: sd}}\n      absent:\n{lines}\n"
    )
    return file


@pytest.mark.parametrize("word", ["emmc", "emmc_ext4"])
def test_what_a_board_cannot_have_is_said_with_its_own_reason(tmp_path, word):
    from evmperf.benchmarks import catalogue

    board = catalogue.board(with_absent(tmp_path, {word: "this board has no eMMC fitted"}))
    assert catalogue.benchmark("emmc_ext4").unsupported(board) == "this board has no eMMC fitted"
    other = catalogue.benchmark("emmc_ext2").unsupported(board)
    assert (other == "this board has no eMMC fitted") == (word == "emmc")


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        ({"emcm": "x"}, ["absent.yaml", "options.absent", "'emcm'", "did you mean 'emmc'"]),
        ({"emmc_ext5": "x"}, ["absent.yaml", "'emmc_ext5'", "did you mean 'emmc_ext"]),
        ({"emmc": "true"}, ["absent.yaml", "options.absent.emmc must be the reason"]),
    ],
)
def test_a_mistake_in_what_is_absent_is_named_with_its_file(tmp_path, absent, words):
    with pytest.raises(UsageError) as error:
        catalogue.board(with_absent(tmp_path, absent))
    for word in words:
        assert word in str(error.value)


# The meter


class RailMeter:
    """Reads 1 V and 2 A; what it is asked is noted among what the board is."""

    def __init__(self, asked=(), error=None):
        self.asked = asked
        self.error = error

    def identity(self):
        return "a meter of the selftests"

    def check(self, rails):
        if self.error:
            raise self.error

    def read(self, rails):
        self.asked.append("read")
        return dict.fromkeys(rails, ("1 V", "2 A"))


def power(outputs):
    log = meter.parse(outputs[meter.JSON_FILE])
    assert log.first_s >= 0.05
    return [Reading("rate", log.power("core") / 1000 + float(outputs["after"]))]


METERED = make(
    lambda case: [
        MeasurePower(
            "sleep", "true", 10, parse=power, shared="sleep",
            window=MeterWindow(("core",), 0.05, 0.1, 0.2, 'echo 10 >"$OUT/after"'),
        )
    ]
)  # fmt: skip


def test_the_meter_waits_by_the_runners_clock(board, tmp_path):
    window = MeterWindow(("core",), 3600.0, 60.0, 7200.0, 'echo 10 >"$OUT/after"')
    sleep = MeasurePower("sleep", "true", 10, parse=power, window=window)
    spool = Spool(tmp_path, Run("fake-1", "fake-evm", "quick"))
    bench = LocalBench(board, LocalShell(tmp_path / "board"), meter=RailMeter([]))
    runner = Runner(bench, spool, "quick", [], clock=SteppingClock())
    result = runner.measure(make(lambda case: [sleep]), A)
    assert result.values("rate") == [12.0]
    assert 7200 < result.tool_s < 7300


def test_the_meter_is_read_between_the_two_commands_of_one_shared_step(lab):
    runner = lab()
    asked = runner.bench.shell().asked
    runner.bench._meter = RailMeter(asked)
    results = [runner.measure(METERED, case) for case in (A, B)]
    assert [result.values("rate") for result in results] == [[12.0], [12.0]]
    for result in results:
        assert result.conditions["meter"] == "a meter of the selftests"
        assert result.raw == results[0].raw
        assert any(name.endswith(meter.JSON_FILE) for name in result.raw)
    first, last = asked.index("read"), len(asked) - asked[::-1].index("read")
    assert set(asked[first:last]) == {"read"}, "something was typed while the meter read"
    assert asked[first - 1].startswith("set -- true")
    assert "after" in asked[last]
    assert len(asked) == last + 1, "one execution for both"


def test_a_meter_without_the_rail_is_a_broken_lab_before_anything_is_started(lab):
    runner = lab(meter=RailMeter(error=LabError("the meter is not connected to core")))
    with pytest.raises(LabError, match="not connected to core"):
        runner.measure(METERED, A)
    assert not any("set -- true" in command for command in runner.bench.shell().asked)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (BoardError("the shell does not come back"), Kind.BOARD,
         "the board does not answer 0.2 s after it was sent to sleep: the shell does not come"),
        (ToolError("`x` did not end: it was interrupted"), Kind.TOOL, "did not end"),
    ],
)  # fmt: skip
def test_a_board_that_does_not_wake_gives_no_figure(lab, error, kind, message):
    runner = lab([None, None, error])  # facts, start, check
    runner.bench._meter = RailMeter([])
    result = runner.measure(METERED, A)
    assert (result.status, result.samples) == (Status.FAILED, ())
    assert result.failures[0].kind is kind
    assert message in result.failures[0].message
    assert runner.bench.abandoned == (kind is Kind.BOARD)
