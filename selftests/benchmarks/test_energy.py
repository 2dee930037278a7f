"""Energy of windows from a meter's readings; selftests/measuring/test_everything.py has meter and board."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks import catalogue, energy
from evmperf.benchmarks.energy import PowerWindow
from evmperf.measure.bench import StepOutput
from evmperf.measure.supply import BoardClock
from evmperf.model.errors import RefusedOutput

S = 10**9
BEGAN = 1_790_000_000 * S


def ramp(seconds, watts_per_s=1.0, every=S // 5):
    return [(BEGAN + t, 2.0 + watts_per_s * t / S) for t in range(-S, (seconds + 1) * S + 1, every)]


@given(st.integers(1, 3 * S), st.integers(2 * S, 6 * S))
def test_a_ramp_is_integrated_to_the_edges_of_the_window(offset, length):
    joules = energy.used(ramp(10), PowerWindow(0, BEGAN + offset, BEGAN + offset + length))
    assert joules == pytest.approx((2 + (offset + length / 2) / S) * length / S)


@pytest.mark.parametrize(
    ("windows", "wanted"),
    [
        ([PowerWindow(0, BEGAN, BEGAN + 4 * S)], [("mean_power", 4, 0), ("energy", 16, 0)]),
        (
            [PowerWindow(0, BEGAN, BEGAN + 4 * S), PowerWindow(0, BEGAN + 4 * S, BEGAN + 6 * S)],
            [("mean_power", 5, 0), ("energy", 30, 0)],
        ),
        ([PowerWindow(1, BEGAN, BEGAN + 4 * S, shared=True)], [("mean_power", 4, 1)]),
    ],
)
def test_a_repetition_has_the_mean_power_and_the_energy_of_all_its_steps(windows, wanted):
    samples, missing = energy.samples(windows, ramp(8))
    assert [(one.metric, round(one.value, 6), one.repetition) for one in samples] == wanted
    assert not missing


@pytest.mark.parametrize(
    "series",
    [
        [],
        ramp(8, every=2 * S),
        [one for one in ramp(8) if one[0] > BEGAN],
        [one for one in ramp(8) if one[0] < BEGAN + 4 * S],
        [one for one in ramp(8) if not S < one[0] - BEGAN < 3 * S],
    ],
)
def test_readings_that_do_not_carry_a_window_give_no_energy(series):
    with pytest.raises(RefusedOutput, match="energy"):
        energy.used(series, PowerWindow(0, BEGAN, BEGAN + 4 * S))


def test_the_boards_clock_is_known_better_with_each_step():
    clock, difference = BoardClock(), BEGAN - 100 * S
    for number, (typed_s, fetched_s) in enumerate([(0.5, 2.0), (0.02, 3.0), (1.0, 0.05)]):
        uptime_s = 100.0 + 10 * number
        begin = difference + round(uptime_s * S)
        output = StepOutput(0, {}, 4.0, 1, uptime_s)
        found = clock.learn(begin - round(typed_s * S), output, begin + round((4 + fetched_s) * S))
        assert found[1] - found[0] == pytest.approx(4 * S)
        off = abs(found[0] - begin)
    assert off < 0.06 * S
    assert BoardClock().learn(0, StepOutput(0, {}, 4.0, 1), S) is None


def test_no_metric_of_the_catalogue_has_a_name_of_energys():
    names = [metric.name for each in catalogue.benchmarks().values() for metric in each.metrics]
    assert not [name for name in names if name in energy.METRICS]
    assert energy.METRICS["mean_power"].unit == "W"
