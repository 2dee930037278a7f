"""A case measured over until its mean is known; so often: scenarios.yaml."""

import itertools
import re

import pytest

from evmperf.benchmarks.step import Measure
from evmperf.model import anytime
from evmperf.model.errors import UsageError
from evmperf.model.repeats import Repeats, parse
from evmperf.model.results import Reading
from evmperf.publish.report.shape import text_table
from selftests.support.runners import A, B, make_rows


@pytest.fixture
def measured(lab, tmp_path):
    """A function that measures two rows of which each round has the next of these readings."""

    def run(repeats, values):
        step = Measure("measure", "true", 10, parse=lambda _: [Reading("rate", next(values))])
        runner = lab(results=tmp_path / str(repeats), repeats=repeats)
        return [runner.measure(make_rows(lambda case: [step]), case) for case in (A, B)]

    return run


def test_it_ends_when_the_mean_is_known_and_not_before_four_rounds(measured):
    noisy = itertools.chain([50.0, 60.0, 40.0], itertools.repeat(50.0, 400))
    first, second = measured(Repeats(within=0.02), noisy)
    values = [sample.value for sample in first.samples]
    assert anytime.half_width(values) <= 0.02 < anytime.half_width(values[:-1])
    assert len(second.samples) == 4
    assert first.conditions["repeat"] == f"{len(values)} rounds"
    assert re.search(r"^  \w: rate ±\d", text_table([first], 120), re.MULTILINE)


def test_the_budget_ends_it_and_that_is_said(measured):
    wild = itertools.cycle([10.0, 90.0])
    first, _ = measured(Repeats(within=0.001, budget_s=1e-9), wild)
    assert len(first.samples) == 1
    assert first.conditions["repeat"] == "1 round, not within 0.1% in 1e-09 s"
    first, _ = measured(None, wild)
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
