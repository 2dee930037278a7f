"""Arithmetic of cells and verdicts: rounding as the guides do, outliers, evidence, distributions."""

import math
import random
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evmperf.model import anytime, distributions
from evmperf.model.stats import outliers, rounded, summarise

figures = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_every_exact_half_is_rounded_away_from_zero(steps, decimals):
    value = float(Decimal(steps * 10 + 5).scaleb(-decimals - 1))  # half a step above so many steps
    text = rounded(value, decimals)
    assert int(text.replace(".", "")) == (steps + 1 if steps >= 0 else steps)


@given(figures, st.integers(0, 6))
def test_rounding_is_within_half_a_step_and_has_so_many_decimals(value, decimals):
    text = rounded(value, decimals)
    assert abs(Decimal(text) - Decimal(repr(value))) <= Decimal(5).scaleb(-decimals - 1)
    assert len(text.partition(".")[2]) == decimals


@given(st.lists(figures, min_size=1, max_size=40))
def test_a_summary_counts_all_and_its_mean_lies_between_its_bounds(values):
    cell = summarise(values)
    assert (cell.count, cell.low, cell.high) == (len(values), min(values), max(values))
    reach = 1e-9 * max(abs(cell.low), abs(cell.high))
    assert cell.low - reach <= cell.mean <= cell.high + reach
    assert cell.outliers == sum(outliers(values))


def test_nothing_cannot_be_summarised():
    with pytest.raises(ValueError, match="at least one"):
        summarise([])


@given(st.lists(figures, max_size=4))
def test_up_to_four_values_have_no_outliers(values):
    assert outliers(values) == [False] * len(values)


@given(figures, st.integers(5, 30))
def test_equal_values_have_no_outliers(value, count):
    assert not any(outliers([value] * count))


@given(st.lists(figures, min_size=5, max_size=40), st.randoms(use_true_random=False))
def test_an_outlier_is_marked_wherever_it_stands(values, random):
    marked = sorted(zip(values, outliers(values), strict=True))
    random.shuffle(values)
    assert sorted(zip(values, outliers(values), strict=True)) == marked


@given(st.lists(st.floats(10, 11), min_size=7, max_size=30), st.sampled_from([-100.0, 100.0]))
def test_a_value_far_out_is_marked_and_the_others_are_kept(values, far):
    assert outliers([*values, far])[-1]
    assert summarise([*values, far]).count == len(values) + 1


def test_the_fences_are_three_interquartile_ranges_out():
    # 1..9: quartiles 3 and 7, range 4, fences -9 and 19; a tenth value moves them a little
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert outliers([*values, 19.0])[-1] is False
    assert outliers([*values, 19.1])[-1] is True


def test_without_values_there_is_no_evidence():
    assert anytime.evidence([]) == pytest.approx(1.0)
    assert anytime.evidence([0.3], floor=0.001) < 2


def test_evidence_is_fair_when_nothing_changed():
    # An e-value's mean is at most 1: a fair bet. Coins are the case that can be added up exactly.
    flips = [[1.0 if number >> bit & 1 else -1.0 for bit in range(10)] for number in range(1 << 10)]
    fair = sum(anytime.signs(values) for values in flips) / len(flips)
    assert fair == pytest.approx(1.0)


def test_students_evidence_is_fair_for_normal_noise():
    source = random.Random(5)
    values = [anytime.student([source.gauss(0, 1) for _ in range(4)]) for _ in range(40000)]
    # Its tail is long: what is above 20 happens rarely, and is checked by its own bound.
    assert sum(value >= 20 for value in values) / len(values) < 0.05
    assert sum(min(value, 20) for value in values) / len(values) < 1.0


def test_the_interval_ends_where_the_evidence_says_so():
    values = [0.05, 0.03, 0.06, 0.04, 0.07, 0.02]
    low, high = anytime.interval(values)
    assert low < 0.045 < high
    assert anytime.evidence(values, low) >= 1 / anytime.ALPHA * 0.99
    assert anytime.evidence(values, high) >= 1 / anytime.ALPHA * 0.99
    assert anytime.evidence(values, 0.9 * low + 0.1 * 0.045) < 1 / anytime.ALPHA


def test_the_means_interval_is_students_evidence_solved():
    values = [10.1, 9.8, 10.3, 10.0, 9.9]
    low, high = anytime.mean_interval(values)
    for edge in (low, high):
        assert anytime.student(values, edge) == pytest.approx(1 / anytime.ALPHA)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_too_few_values_bound_nothing(count):
    assert anytime.interval([1.0] * count, floor=0.01) == (-math.inf, math.inf)
    assert anytime.mean_interval([1.0] * count, floor=0.01) == (-math.inf, math.inf)


def test_equal_values_do_not_mean_that_there_is_no_noise():
    low, high = anytime.interval([0.05] * 5, floor=0.001)
    assert 0.04 < low < 0.05 < high < 0.06


def test_one_odd_value_does_not_move_the_centre():
    assert anytime.centre([1.0, 1.1, 0.9, 1.0, 50.0]) == pytest.approx(1.05)
    with pytest.raises(ValueError, match="empty data"):
        anytime.centre([])


@pytest.mark.parametrize(
    ("evidences", "named"),
    [
        ([], []),
        ([19.0], [False]),
        ([20.0], [True]),
        ([20.0, 1.0], [False, False]),  # two metrics: twice the evidence
        ([40.0, 1.0], [True, False]),
        ([20.0, 20.0], [True, True]),  # unless both changed
        ([1.0, 70.0, 25.0, 25.0], [False, False, False, False]),
        ([1.0, 70.0, 40.0, 30.0], [False, True, True, True]),
    ],
)
def test_many_metrics_need_more_evidence_each(evidences, named):
    assert anytime.discoveries(evidences) == named


DEVIATIONS = np.concatenate([-np.logspace(-6, 1.5, 60), [0.0], np.logspace(-6, 1.5, 60)])
SHARES = np.concatenate([np.logspace(-14, -0.31, 50), [0.5], 1 - np.logspace(-8, -0.31, 30)])


@pytest.mark.parametrize("name", ["ndtr", "ndtri"])
def test_normal(name):
    at = DEVIATIONS if name == "ndtr" else SHARES
    expected = getattr(special, name)(at)
    assert getattr(distributions, name)(at) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 30, 99, 500])
def test_student(degrees):
    expected = 2 * special.stdtr(degrees, -np.abs(DEVIATIONS))
    found = [distributions.student(degrees, one) for one in DEVIATIONS]
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-11)


def test_ends():
    assert list(distributions.ndtri([0, 1])) == [-np.inf, np.inf]
    assert np.isnan(distributions.ndtri(np.nan))
