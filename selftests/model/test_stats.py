"""Arithmetic of cells: rounding as the guides do, summaries, outliers."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
