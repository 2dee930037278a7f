"""The date of an open alarm: it moves for what many nights say, not for what one does."""

import numpy as np
import pytest

from evmperf.judge import life
from evmperf.judge.shift import Shift
from evmperf.model.alarm import MetricAlarm

LEVEL, SPREAD, LOSS, BEGIN = 100.0, 0.01, -0.10, 20
RUNS = [f"n{number:03}" for number in range(BEGIN + 40)]


def nights(seed: int) -> np.ndarray:
    """A figure before and after a loss that lasts."""
    values = LEVEL * np.exp(np.random.default_rng(seed).normal(0, SPREAD, len(RUNS)))
    values[BEGIN:] *= 1 + LOSS
    return values


def alarm_of(nights_old: int, values: np.ndarray) -> MetricAlarm:
    """The alarm that opens four nights after the loss, dated so many nights back, at the end."""
    end = BEGIN + 4
    shift = Shift(1e-9, nights_old, LEVEL, LOSS, SPREAD, False, False, False, 0.2, 0.1, 0.05)
    alarm = life.opened(shift, RUNS[:end])
    return life.followed(alarm, list(values), RUNS, better=False)


@pytest.mark.parametrize("seed", range(10))
def test_a_date_that_many_nights_speak_against_moves_once_and_is_said(seed):
    alarm = alarm_of(1, nights(seed))
    assert alarm.is_open
    assert (alarm.since, alarm.good, alarm.dated_before) == (RUNS[BEGIN], RUNS[BEGIN - 1], RUNS[BEGIN + 3])
    assert alarm.story().endswith(f", dated again (was {RUNS[BEGIN + 3]})")


@pytest.mark.parametrize("seed", range(10))
def test_an_odd_night_some_nights_before_it_moves_no_date(seed):
    values = nights(seed)
    values[BEGIN - 3] *= 0.5
    alarm = alarm_of(4, values)
    assert alarm.is_open
    assert (alarm.since, alarm.dated_before) == (RUNS[BEGIN], "")
