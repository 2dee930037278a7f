"""Trends: levels, changes, what is comparable, and what somebody accepted."""

import numpy as np
import pytest
from msgspec.structs import replace

from evmperf.judge import steps, trends
from evmperf.judge.accepted import Accepted
from evmperf.judge.nights import EarlierNight, Past
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.figures import Key
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome

KEY = Key("emmc_ext4", "102400", "write_throughput")
UNDER = {"board": "evm", "profile": "full"}
SHARED = {}
"""What is measured alike is the same object, as in `evmperf.judge.nights`."""


def nights(values, key=KEY, unit="MB/s", under=UNDER):
    alike = SHARED.setdefault(tuple(under.items()), under)
    return [
        EarlierNight(
            Run(f"night-{n:03}", "evm", "full", started_ns=n * 10**9),
            {key: Past(float(value), unit, alike, (float(value),))},
        )
        for n, value in enumerate(values)
    ]


def noisy(level, count, seed=1):
    return level * (1 + 0.01 * np.random.default_rng(seed).standard_normal(count))


def the_trend(found, marks=(), key=KEY):
    return trends.of_nights(found, marks).trends[key]


def mark(night, why="meant"):
    return Accepted("emmc_ext4/*/*", "evm", f"night-{night:03}", night * 10**9, why)


def test_a_step_is_two_levels_and_a_change_at_its_night():
    trend = the_trend(nights([*noisy(100, 40), *noisy(80, 40, 2)]))
    assert [(level.first, level.last) for level in trend.levels] == [(0, 39), (40, 79)]
    assert [level.value for level in trend.levels] == pytest.approx([100, 80], rel=0.01)
    (move,) = trend.moves
    assert (move.at, move.outcome, move.worse) == (40, Outcome.WORSE, True)
    assert move.change == pytest.approx(-0.2, abs=0.02)
    assert trend.verdict.outcome is Outcome.SAME  # ten nights and more: it is the level now


def test_the_newest_nights_have_a_verdict_before_there_is_a_level():
    trend = the_trend(nights([*noisy(100, 60), *noisy(80, 5, 2)]))
    assert trend.moves == []
    assert trend.verdict.outcome is Outcome.WORSE
    assert trend.verdict.since in {f"night-{n:03}" for n in range(60, 65)}


@pytest.mark.parametrize("count", range(8, 16))
def test_a_new_level_and_newest_figures_that_are_off_are_one_change(count):
    past = nights([*noisy(100, 60), *noisy(80, count, 2)])
    trend = the_trend(past)
    off = trend.off_since([night.run for night in past])
    assert len(trend.moves) + (off is not None) == 1


def test_the_date_of_a_change_is_that_of_the_alarm_that_was_kept():
    """A repair is none of its own."""
    found = nights([*noisy(100, 40), *noisy(90, 20, 2), *noisy(100, 20, 3)])
    for number in range(43, 61):
        state = AlarmState.OPEN if number < 60 else AlarmState.RECOVERED
        alarm = MetricAlarm(state, "night-043", "night-043", "night-042", min(number, 59) - 42, 100.0, -0.1)
        found[number] = EarlierNight(found[number].run, found[number].figures, {KEY: alarm}, True)
    trend = the_trend([EarlierNight(one.run, one.figures, one.alarms, True) for one in found])
    assert [(move.at, move.outcome) for move in trend.moves] == [(43, Outcome.WORSE)]
    assert [level.first for level in trend.levels] == [0, 43, 60]


def test_an_alarm_that_an_ab_withdrew_is_no_loss_of_the_newest_night():
    found = nights([*noisy(100, 40), 60])
    alarm = MetricAlarm(AlarmState.WITHDRAWN, "night-040", "night-040", "night-039", 1, 100.0, -0.4)
    trend = the_trend([*found[:-1], EarlierNight(found[-1].run, found[-1].figures, {KEY: alarm}, True)])
    assert (trend.verdict.outcome, trend.verdict.alarm) == (Outcome.UNKNOWN, alarm)


def test_what_check_calls_a_slow_board_is_no_loss_of_its_figures():
    keys = [Key("emmc_ext4", str(number), "write_throughput") for number in range(40)]
    rows = [nights([*noisy(100, 40, seed), 80 + 0.1 * seed], key) for seed, key in enumerate(keys)]
    found = [
        EarlierNight(
            night[0].run, {key: one.figures[key] for key, one in zip(keys, night, strict=True)}, {}, True
        )
        for night in zip(*rows, strict=True)
    ]
    assert not [one for one in trends.of_nights(found).trends.values() if one.outcome is Outcome.WORSE]


def test_noise_is_one_level():
    trend = the_trend(nights(noisy(100, 200)))
    assert (len(trend.levels), trend.moves, trend.verdict.outcome) == (1, [], Outcome.SAME)


def test_a_change_that_was_meant_is_no_alarm():
    found = nights([*noisy(100, 40), *noisy(80, 40, 2)])
    trend = the_trend(found, [mark(41, "the driver waits")])
    assert trend.moves[0].accepted.why == "the driver waits"
    assert not trend.moves[0].worse
    assert the_trend(found, [mark(20)]).moves[0].worse  # meant, but not this one


def test_nights_under_other_conditions_are_shown_and_not_compared():
    other = nights([50.0], under={**UNDER, "profile": "quick"})[0].figures[KEY]
    found = nights(noisy(100, 40))
    found[38:] = [EarlierNight(found[38].run, {KEY: other}), *nights([0.1], unit="GB/s")]
    trend = the_trend(found)
    assert [point.other for point in trend.points if point.other] == [
        "profile differs (full, not quick)",
        "unit differs (MB/s, not GB/s)",
    ]
    assert len(trend.alike) == 38
    assert len(trend.levels) == 1


def test_a_quantity_without_a_direction_changes_and_is_not_judged():
    key = Key("no_such_benchmark", "case", "figure")
    trend = the_trend(nights([*noisy(100, 40), *noisy(80, 40, 2)], key), key=key)
    assert trend.moves[0].outcome is Outcome.NOT_JUDGED
    assert trend.verdict is None


def test_changes_of_several_series_are_each_ones_own():
    moved = [*noisy(100, 30), *noisy(120, 30, 2), *noisy(90, 30, 3)]
    assert steps.changes([noisy(100, 50), moved, [1.0] * 5, [7.0] * 50]) == [[], [30, 60], [], []]


@pytest.mark.parametrize(("nights_of_twin", "left"), [(14, 44), (4, 30)])
def test_the_level_of_a_twin_is_taken_out_or_its_nights_are_not_compared(nights_of_twin, left):
    """Two boards share a name and alternate; one is 30 % faster, which is no change."""
    found = []
    for number, value in enumerate(noisy(100, 30)):
        found += nights([value], under={**UNDER, "serial number": "one"})
        if number >= 30 - nights_of_twin:
            found += nights([value * 1.3], under={**UNDER, "serial number": "two"})
    found.append(nights([100], under={**UNDER, "serial number": "one"})[0])
    ordered = [
        EarlierNight(replace(night.run, id=f"night-{n:03}", started_ns=n * 10**9), night.figures)
        for n, night in enumerate(found)
    ]
    trend = the_trend(ordered)
    assert (len(trend.alike), trend.moves) == (left + 1, [])
    assert trend.verdict.outcome is not Outcome.WORSE
    ((twin, ratio),) = trend.twins.items()
    assert "serial number differs (one, not two)" in twin
    assert ratio == (pytest.approx(1 / 1.3, rel=0.02) if left == 44 else 0.0)
