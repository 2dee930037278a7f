"""An open alarm, night after night: is the loss still there, how large is it, and has it changed again.

Some newest nights show together that a figure is elsewhere: the fewer they are, the further away. Back at the
old level they end the alarm; between the levels the loss is half mended and stays open.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from evmperf.judge.shift import Shift
from evmperf.model.alarm import AlarmState, MetricAlarm

_TOGETHER = {1: 12.0, 2: 6.0, 3: 4.0, 5: 2.5, 10: 1.6}
"""Nights, and the spreads that their median must be away from where it was to be at a level of its own."""
_OVER = {1: 4.0, 2: 3.0, 3: 2.5, 5: 2.0, 10: 1.6}
"""The same of nights that are back at the old level, which is known: an odd night is over the night after."""
_ALL, _MOST = 3, 0.6
"""Of so many nights and fewer all must have most of that, of more tonight's figure."""
_OLD = 15
"""Nights of an alarm from which on one night does not end it."""
_BORNE_OUT = 0.6
"""The share of a change that a night has which bears it out."""
_BACK = 1 / 3
"""The share of a change that is left where it is over."""
_NIGHTS_BACK, _HALF = 5, 0.5
"""Nights that do not bear a change out, and the share of it that most of them have less than: it is over. A
change that ten nights showed, of a spread, no table ends.
"""
_NEWEST = 10
"""Nights that the size is taken from; of something better, those after which it is the level."""
_MEDIAN_ERROR = 1.25 * 1.96
"""Of a median of normal values at 95 %, in standard errors of the mean."""


def opened(
    shift: Shift, runs: Sequence[str], state: AlarmState = AlarmState.OPEN, under: MetricAlarm | None = None
) -> MetricAlarm:
    """The alarm of a shift, on top of another if one is `under` it; `runs` are those of the series, tonight's
    last.
    """
    place = max(len(runs) - shift.nights, 0)
    error = 1.96 * shift.spread / math.sqrt(min(shift.nights, _NEWEST))
    return MetricAlarm(
        state,
        runs[place],
        runs[-1],
        runs[max(place - 1, 0)],
        len(runs) - place,
        shift.level,
        shift.off,
        shift.off - error,
        shift.off + error,
        max(shift.spread, 1e-3),
        slow=shift.slow,
        at_once=shift.at_once,
        under=under,
    )


def followed(alarm: MetricAlarm, values: Sequence[float], runs: Sequence[str], better: bool) -> MetricAlarm:
    """The alarm after tonight, and after nights before it that nobody judged, until it ends; `better` is
    whether it is of something better. `values` and `runs` are the metric's, oldest first, tonight last.
    """
    judged = runs.index(alarm.since) + alarm.nights if alarm.since in runs else len(values)
    for end in range(min(judged + 1, len(values)), len(values) + 1):
        alarm = _after(alarm, values[:end], runs[:end], better)
        if not alarm.is_open:
            break
    return alarm


def again(ended: MetricAlarm, values: Sequence[float], runs: Sequence[str]) -> MetricAlarm | None:
    """The alarm of a loss that is there again as it was before it ended, None if it is not."""
    away, size = [_away(ended, value) for value in values], _sized(ended)
    count = _elsewhere(away, 0.0, ended.spread)
    there = _left(away, count, size) if count else 0.0
    if not _BORNE_OUT <= there <= 1 / _BORNE_OUT or count >= len(runs):
        return None
    fresh = replace(
        ended, state=AlarmState.OPEN, since=runs[-count], opened=runs[-1], good=runs[-count - 1], nights=count
    )
    return replace(fresh, undecided=0, eased="", under=None, earlier=(*ended.earlier, ended.since))


def _after(alarm: MetricAlarm, values: Sequence[float], runs: Sequence[str], better: bool) -> MetricAlarm:
    """The alarm after the last night."""
    # Where the history begins later, all of it is since then.
    begin = runs.index(alarm.since) if alarm.since in runs else 0
    nights = len(values) - begin if alarm.since in runs else alarm.nights + 1
    first = runs.index(alarm.eased) if alarm.eased in runs else begin
    away, size = [_away(alarm, value) for value in values[first:]], _sized(alarm)
    left = away[-1] / size if size else 0.0
    most_back = len(away) > _NIGHTS_BACK and _left(away, _NIGHTS_BACK, size) < _HALF
    # After several nights that do not bear it out, one that does is not enough.
    doubted = left < _BORNE_OUT or most_back
    undecided = alarm.undecided + 1 if doubted else max(alarm.undecided - 2, 0)
    alarm = replace(alarm, nights=nights, undecided=undecided)
    fewest = 1 + (nights > _OLD)
    count = _elsewhere(away, size, alarm.spread, _OVER, fewest)
    over = (most_back and undecided >= _NIGHTS_BACK) or undecided >= _NEWEST
    if over or (count and _left(away, count, size) <= _BACK):
        alarm = replace(alarm, state=AlarmState.RECOVERED, nights=nights - max(count, 1), undecided=0)
        return _after(alarm.under, values, runs, better) if alarm.under else alarm
    count = _elsewhere(away, size, alarm.spread, fewest=fewest)
    # What is left of it is neither all nor nothing.
    if count and _left(away, count, size) < 1 and not alarm.slow and _elsewhere(away, 0.0, alarm.spread):
        alarm, away = replace(alarm, eased=runs[-count], undecided=0), away[-count:]
    if alarm.undecided:
        return alarm
    alarm = _measured(alarm, away[-_NEWEST:])
    return replace(alarm, state=AlarmState.LEVEL) if better and nights >= _NEWEST else alarm


def _left(away: Sequence[float], count: int, size: float) -> float:
    """The share of a change that some newest nights have."""
    return statistics.median(away[-count:]) / size if size else 1.0


def _elsewhere(
    away: Sequence[float],
    usual: float,
    spread: float,
    together: Mapping[int, float] = MappingProxyType(_TOGETHER),
    fewest: int = 1,
) -> int:
    """Of how many newest nights, at least the `fewest`, the figures are together elsewhere; 0 for none."""
    for count, spreads in together.items():
        newest = [one - usual for one in away[-count:]]
        if not fewest <= count <= len(newest):
            continue
        off = statistics.median(newest)
        judging = newest if count <= _ALL else newest[-1:]
        if off and abs(off) >= spreads * spread and all(one / off > _MOST for one in judging):
            return count
    return 0


def _measured(alarm: MetricAlarm, away: Sequence[float]) -> MetricAlarm:
    """The alarm with the size that some nights show."""
    size, error = statistics.median(away), _MEDIAN_ERROR * alarm.spread / math.sqrt(len(away))
    sizes = [size, size - error, size + error]
    size, low, high = sizes if alarm.unit else map(math.expm1, sizes)
    return replace(alarm, size=size, low=low, high=high)


def _away(alarm: MetricAlarm, value: float) -> float:
    """How far a figure is from an alarm's level: a logarithm, or in its unit from a level of 0."""
    if alarm.unit:
        return value - alarm.level
    if value > 0 and alarm.level > 0:
        return math.log(value / alarm.level)
    return _logarithm((value - alarm.level) / abs(alarm.level)) if alarm.level else 0.0


def _sized(alarm: MetricAlarm) -> float:
    return alarm.size if alarm.unit else _logarithm(alarm.size)


def _logarithm(share: float) -> float:
    return math.log1p(max(share, -0.999))
