"""A case measured over: so often, or until its mean is known."""

import itertools
import re

import pytest

from evmperf.benchmarks.benchmark import Profile
from evmperf.benchmarks.step import CleanUp, Measure
from evmperf.model import anytime
from evmperf.model.errors import UsageError
from evmperf.model.repeats import Repeats, parse
from evmperf.model.results import Reading, Status
from evmperf.publish.report.shape import text_table
from selftests.support.runners import RATE, A, B, make


@pytest.fixture
def measured(lab, tmp_path):
    """A function that measures two rows with a step of certain readings, and gives the results and
    how often the step was executed.
    """

    def run(repeats, values, shared="", repetitions=1, status=0):
        numbers = iter(values)
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)

        def steps(board, case, plan):
            command = f"echo >>{calls}; exit {status}"
            return [
                *(
                    Measure(
                        f"m{n}",
                        command,
                        10,
                        repetition=n,
                        shared=shared and f"{shared}{n}",
                        parse=lambda _: [Reading("rate", next(numbers))],
                    )
                    for n in range(plan.repeats)
                ),
                CleanUp("clean-up", f"echo clean >>{calls}", 10),
            ]

        rows = Profile((A, B), repetitions)
        benchmark = make(metrics=(RATE,), profiles={"quick": rows}, steps=steps, tools=())
        runner = lab(results=tmp_path / str(len([*tmp_path.iterdir()])), repeats=repeats)
        results = [runner.measure(benchmark, case) for case in benchmark.cases("quick")]
        text = calls.read_text()
        return results, text.count("\n") - text.count("clean")

    return run


def test_a_case_is_measured_so_often_and_its_repetitions_are_numbered_on(measured):
    (first, _), _ = measured(Repeats(3), itertools.repeat(50.0), repetitions=2)
    assert [sample.repetition for sample in first.samples] == [0, 1, 2, 3, 4, 5]
    assert first.status is Status.MEASURED
    assert first.conditions["repeat"] == "3 rounds"


def test_rows_that_share_an_execution_share_one_of_each_round(measured):
    results, executions = measured(Repeats(3), itertools.repeat(50.0), shared="tool")
    assert executions == 3
    assert [len(result.samples) for result in results] == [3, 3]


def test_it_ends_when_the_mean_is_known_and_not_before_four_rounds(measured):
    noisy = [50.0, 60.0, 40.0, *itertools.repeat(50.0, 400)]
    (first, second), _ = measured(Repeats(within=0.02), noisy)
    values = [sample.value for sample in first.samples]
    assert anytime.half_width(values) <= 0.02 < anytime.half_width(values[:-1])
    assert len(second.samples) == 4
    assert first.conditions["repeat"] == f"{len(values)} rounds"
    assert re.search(r"^  \w: rate ±\d", text_table([first], 120), re.MULTILINE)


def test_the_budget_or_a_round_that_failed_ends_it_and_that_is_said(measured):
    wild = itertools.cycle([10.0, 90.0])
    (first, _), _ = measured(Repeats(within=0.001, budget_s=1e-9), wild)
    assert len(first.samples) == 1
    assert first.conditions["repeat"] == "1 round, not within 0.1% in 1e-09 s"
    (first, _), executions = measured(Repeats(5), iter([]), status=3)
    assert (first.status, executions) == (Status.FAILED, 2)  # one for each row
    (first, _), _ = measured(None, wild)
    assert "repeat" not in first.conditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", Repeats(5)),
        ("until:2%", Repeats(within=0.02)),
        ("until:0.5%/30m", Repeats(within=0.005, budget_s=1800)),
    ],
)
def test_what_is_asked_for_is_read(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "until:2", "until:0%", "until:2%/x", "2%"])
def test_anything_else_is_a_wrong_call(text):
    with pytest.raises(UsageError):
        parse(text)
