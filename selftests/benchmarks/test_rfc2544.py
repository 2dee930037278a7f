"""The search for the highest rate without loss, against every kind of board."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evmperf.benchmarks.families import rfc2544
from evmperf.benchmarks.step import readings

rates = st.floats(1e-3, 1e6)
resolutions = st.floats(0.001, 2.0)


def run(maximum, resolution, threshold, sender=math.inf):
    """The outcome, and all rates tried, with a board that loses nothing up to `threshold` and a
    tester that cannot send faster than `sender`.
    """
    tried = []

    def trial(number, rate):
        tried.append(rate)
        assert number == len(tried)
        return rate

    search = rfc2544.search(maximum, resolution, trial)
    next(search)
    while True:
        offered = min(tried[-1], sender)
        found = readings(rate=tried[-1], offered=offered, lost=float(offered > threshold))
        try:
            search.send(found)
        except StopIteration as end:
            return end.value.get("rate"), tried


@given(rates, resolutions, st.floats(0.0, 2.0), st.floats(0.0, 2.0))
@example(1000.0, 0.01, 1.0, 2.0)
@example(1000.0, 0.01, rfc2544.FLOOR, 2.0)
@example(1000.0, 0.01, 0.5, 0.0005)
@example(1000.0, 0.01, 0.00005, 2.0)
def test_it_ends_in_time_with_a_rate_that_passed_and_is_near_the_threshold(
    maximum, resolution, threshold, sender
):
    threshold, sender = threshold * maximum, sender * maximum
    found, tried = run(maximum, resolution, threshold, sender)
    assert len(tried) <= rfc2544.most_trials(resolution)
    assert all(maximum * rfc2544.FLOOR * 0.999 <= rate <= maximum for rate in tried)
    assert tried[0] == maximum
    passed = [rate for rate in tried if min(rate, sender) <= threshold]
    if found is None:
        assert not passed
        assert min(tried) == pytest.approx(maximum * rfc2544.FLOOR)
        return
    assert found == max(passed)
    reachable = min(maximum, threshold if threshold < sender else math.inf)
    assert found >= reachable / (1 + resolution) * 0.999999


@pytest.mark.parametrize("resolution", [0.001, 0.01, 0.5, 2.0])
def test_the_bound_on_trials_is_no_more_than_needed(resolution):
    most = max(len(run(1.0, resolution, 10 ** (-4.2 * step / 2000))[1]) for step in range(2001))
    assert most == rfc2544.most_trials(resolution)


def test_a_slow_sender_lowers_the_upper_end():
    found, tried = run(1000.0, 0.01, 50.0, sender=100.0)
    assert tried[1] == pytest.approx(math.sqrt(0.1 * 100.0))
    assert 50 / 1.01 <= found <= 50
