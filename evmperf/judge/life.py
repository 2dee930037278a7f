"""An open alarm, night after night: is the loss still there, how large is it, and since when.

Tonight is held against the level before the alarm and that since. The evidence that the loss is over is the
sum of the log-likelihood ratios of the nights since it was last borne out (E. S. Page, Biometrika 41, 1954;
A. Wald, Sequential Analysis, 1947). A date moves only where another one explains the nights better by far.
"""

import math
import statistics
from collections.abc import Sequence

from msgspec.structs import replace

from evmperf.judge.shift import Shift
from evmperf.model.alarm import AlarmState, MetricAlarm

_OVER = 200
"""Times its nights, the likelihood ratio that ends an alarm: of so many lasting losses one is called over by
chance, on whichever night.
"""
_MOST_OF_A_NIGHT = 8.0
"""Evidence of one night at most, as any night may be odd; or what Student's t of three degrees has."""
_AT_LEVEL = 3.0
"""Spreads from the old level within which a night is back."""
_SOME = 0.1
"""Evidence that makes a doubt, of a night that does not bear the change out."""
_BORNE_OUT = 0.6
"""The share of a change that a night has which bears it out."""
_DATED_AGAIN = math.log(1000)
_BEFORE = 5
"""Nights before its date in which an alarm may have begun."""
_NEWEST = 10
"""Nights that the size is taken from; of something better, those after which it is the level."""
_UNDECIDED = 5
"""Nights in a row that do not bear an alarm out; they end it where most have less than half of the change."""
_LEAST = 3
"""Nights of a window that have a level of their own."""
_ODD = 4.0
"""Spreads at which a night counts as no further away."""
_MEDIAN_ERROR = 1.25 * 1.96
"""Of a median of normal values at 95 %, in standard errors of the mean."""


def opened(shift: Shift, runs: Sequence[str], state: AlarmState = AlarmState.OPEN) -> MetricAlarm:
    """The alarm of a shift; `runs` are those of the series, tonight's last."""
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


def _after(alarm: MetricAlarm, values: Sequence[float], runs: Sequence[str], better: bool) -> MetricAlarm:
    """The alarm after the last night."""
    # Where the history begins later, all of it is since then.
    is_dated = alarm.since in runs
    begin = runs.index(alarm.since) if is_dated else 0
    away = [_away(value, alarm.level) for value in values[max(begin - _BEFORE, 0) :]]
    first = min(begin, _BEFORE)
    since, tonight = away[first:-1][-_NEWEST:], away[-1]
    last, spread = _plain(alarm.size), alarm.spread
    side = math.copysign(1, last)
    half = abs(last) / 2
    # Nights that are back say nothing of how large it was.
    lasting = max(side * statistics.median(since), half) if len(since) >= _LEAST else abs(last)
    # Beyond the old level is as far back as one can be.
    left = max(side * tonight, 0.0)
    evidence = ((left - lasting) ** 2 - left**2) / (2 * spread**2)
    most = max(_MOST_OF_A_NIGHT, 2 * math.log1p((lasting / spread) ** 2 / 3))
    doubt = max(alarm.doubt + max(min(evidence, most), -most), 0.0)
    newest = [*since, tonight][-_NEWEST:]
    most_back = len(since) >= _LEAST and side * statistics.median(newest[-_UNDECIDED:]) < half
    if most_back or left < _BORNE_OUT * lasting:
        doubt = max(doubt, _SOME)
    nights = len(values) - begin if is_dated else alarm.nights + 1
    undecided = alarm.undecided + 1 if doubt else 0
    back = -lasting <= side * tonight <= max(_AT_LEVEL * spread, lasting / 3)
    if (doubt >= math.log(_OVER * nights) and back) or (undecided >= _UNDECIDED and most_back):
        return replace(alarm, state=AlarmState.RECOVERED, nights=nights - undecided, doubt=doubt)
    alarm = replace(alarm, nights=nights, doubt=doubt, undecided=undecided)
    if doubt:
        return alarm
    size, error = statistics.median(newest), _MEDIAN_ERROR * spread / math.sqrt(len(newest))
    alarm = replace(
        alarm,
        state=AlarmState.LEVEL if better and nights >= _NEWEST else alarm.state,
        size=math.expm1(size),
        low=math.expm1(size - error),
        high=math.expm1(size + error),
    )
    return _dated(alarm, runs, away, first, size) if is_dated and not alarm.slow else alarm


def _dated(
    alarm: MetricAlarm, runs: Sequence[str], away: Sequence[float], first: int, size: float
) -> MetricAlarm:
    """The alarm with another date, where that explains the nights much better."""
    limit = (_ODD * alarm.spread) ** 2
    before = [min(one**2, limit) for one in away]
    after = [min((one - size) ** 2, limit) for one in away]
    # What a date costs against the present one, in squares.
    costs = {place: sum(before[:place]) + sum(after[place:]) for place in range(len(away) - _LEAST + 1)}
    costs.setdefault(first, sum(before[:first]) + sum(after[first:]))
    best = min(costs, key=lambda place: costs[place])
    if costs[first] - costs[best] < 2 * _DATED_AGAIN * alarm.spread**2:
        return alarm
    place = len(runs) - len(away) + best
    since, good = runs[place], runs[max(place - 1, 0)]
    return replace(alarm, since=since, good=good, dated_before=alarm.since, nights=len(away) - best)


def _away(value: float, level: float) -> float:
    """How far a figure is from a level: a logarithm, or a share where there is none."""
    if value > 0 and level > 0:
        return math.log(value / level)
    return _plain((value - level) / abs(level)) if level else 0.0


def _plain(share: float) -> float:
    return math.log1p(max(share, -0.999))
