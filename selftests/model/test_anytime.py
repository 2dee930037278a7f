import math
import random

import pytest

from evmperf.model import anytime


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
