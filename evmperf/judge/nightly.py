"""A run judged by the board's earlier runs, all metrics together, with the alarms that are open."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from evmperf.judge import accepted, judge, life, shift
from evmperf.judge.causes import differences
from evmperf.judge.judge import Subject, better
from evmperf.judge.nights import EarlierNight, Track, meant, pasts
from evmperf.judge.past import FEWEST, REFERENCE
from evmperf.judge.published import declared, source
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.stats import share_text
from evmperf.model.units import Unit
from evmperf.model.verdict import HISTORY, Outcome, Reason, Verdict, better_or_worse, by_severity

_SMALLEST_BRIEF = 0.02
"""Relative change below which nothing is called changed that began fewer than _LASTING nights ago."""
_SMALLEST_SECOND = 0.03
"""The same of a second loss of what is worse already."""
_LASTING = 10


def against_nights(
    subject: Subject, history: Iterable[EarlierNight], level: float = shift.LEVEL, one_night: bool = True
) -> list[Verdict]:
    """Judge a run by the board's earlier runs, oldest first; `one_night` is whether a single night may decide
    on a loss.
    """
    judged: list[bool] = []
    runs: list[Run] = []
    counts: list[int] = []
    unmeasured: dict[Key, tuple[str, MetricAlarm]] = {}

    def noted() -> Iterator[EarlierNight]:
        for night in history:
            judged.append(night.judged)
            runs.append(night.run)
            counts.append(len(night.figures))
            for key, alarm in night.alarms.items():
                if alarm.is_open:
                    measured = (
                        night.run.id if key in night.figures else unmeasured.get(key, (alarm.since,))[0]
                    )
                    unmeasured[key] = (measured, alarm)
                else:
                    unmeasured.pop(key, None)
            yield night

    series, verdicts = _series(subject, noted())
    verdicts += newest(series, [*runs, subject.run], judged, level, one_night)
    began = {run.id: run.started_ns for run in [*runs, subject.run]}
    verdicts = [_if_meant(subject, verdict, began) for verdict in verdicts]
    return list(by_severity([*verdicts, *_not_measured(subject, unmeasured, began, max(counts, default=0))]))


def newest(
    series: Sequence[JudgedSeries],
    runs: Sequence[Run],
    judged: Sequence[bool],
    level: float = shift.LEVEL,
    one_night: bool = True,
) -> list[Verdict]:
    """The verdicts on the newest of some runs; `judged` says of those before whether somebody judged them."""
    if series and not any(judged[-_CAUGHT_UP:]):
        series = _caught_up(series, level)
    return latest(series, level, alike=alike(runs), one_night=one_night)


def _if_meant(subject: Subject, verdict: Verdict, began: Mapping[str, int]) -> Verdict:
    """The verdict, the same if its change is one that somebody accepted."""
    mark = accepted.latest(subject.marks, verdict.key, subject.run.board)
    if not (mark and verdict.alarm and meant(verdict.alarm, mark, began)):
        return verdict
    alarm = structs.replace(verdict.alarm, state=AlarmState.ACCEPTED)
    why = f"accepted since {mark.since}: {mark.why}"
    return replace(verdict, outcome=Outcome.SAME, alarm=alarm, why=why, reason=Reason.ALARM)


def _not_measured(
    subject: Subject, alarms: Mapping[Key, tuple[str, MetricAlarm]], began: Mapping[str, int], usual: int
) -> Iterator[Verdict]:
    """Verdicts on figures that the run does not have, with the open alarm and the run that had it last: a
    loss is not over because nobody measures it. Of a run of less than half of the `usual` number of figures
    the benchmarks that it has count.
    """
    mine, selected = {key.benchmark for key in subject.figures}, 2 * len(subject.figures) < usual
    for key, (last, alarm) in alarms.items():
        if key in subject.figures or (selected and key.benchmark not in mine):
            continue
        if meant(alarm, accepted.latest(subject.marks, key, subject.run.board), began):
            continue
        unit = alarm.unit or (metric.unit if (metric := declared.metric(key)) else "")
        verdict = Verdict(key, Outcome.UNKNOWN, str(unit), better(key), baseline=alarm.level, alarm=alarm)
        if better_or_worse(alarm.size, verdict.better) is Outcome.WORSE:
            why = f"not measured since {last}: {alarm.story()}"
            yield replace(verdict, why=why, reason=Reason.NOT_MEASURED)


def alike(runs: Sequence[Run]) -> int:
    """Of how many newest runs nothing known differs from the run before each, but what differs on most nights
    of this lab: where each has an image of its own, that tells nothing of a slow board.
    """
    pairs = list(itertools.pairwise(runs[-_USUAL - 1 :]))
    differing = [{one.partition(" differs")[0] for one in differences(*pair)} for pair in pairs]
    counts = Counter(itertools.chain.from_iterable(differing))
    usual = {name for name, count in counts.items() if count > len(pairs) / 2 and len(pairs) >= FEWEST}
    newest = reversed(differing[-shift.SETTLED :])
    return sum(1 for _ in itertools.takewhile(lambda names: names <= usual, newest))


_USUAL = 10
"""Nights that tell what differs from night to night."""
_CAUGHT_UP = 15
"""Nights that are judged first where nobody judged any of so many: a change among them has no alarm yet."""
_TAILS = (3, 5, 10, _CAUGHT_UP)
"""Newest nights whose median shows a change that began with one of the nights that nobody judged."""
_MOVED = 2.0
"""Standard errors of a median that show one: a series without a change has as much in one of seven."""


def _caught_up(series: Sequence[JudgedSeries], level: float) -> list[JudgedSeries]:
    """Series with the alarms that judging their newest nights, one after the other, would have left: those
    without a change in them have none, and are not judged.
    """
    newest = max((row.runs[:-1] for row in series), key=len)[-_CAUGHT_UP:]
    moved = {place: row for place, row in enumerate(series) if _may_have_moved(row.values)}
    values = {place: dict(zip(row.runs, row.values, strict=False)) for place, row in moved.items()}
    tracks = {place: Track() for place in moved}
    for place, track in tracks.items():
        for run, value in values[place].items():
            if run not in newest:
                track.take(value, run, None)
    for run in newest:
        ready = {
            place: series_of(track, replace(moved[place].verdict, value=values[place][run]), run)
            for place, track in tracks.items()
            if run in values[place] and len(track.values) >= FEWEST
        }
        verdicts = latest([*ready.values()], level, len(series) - len(moved))
        alarms = {place: verdict.alarm for place, verdict in zip(ready, verdicts, strict=True)}
        for place, track in tracks.items():
            if run in values[place]:
                track.take(values[place][run], run, alarms.get(place))
    return [
        series_of(tracks[place], row.verdict, row.runs[-1]) if place in tracks else row
        for place, row in enumerate(series)
    ]


def _may_have_moved(values: Sequence[float]) -> bool:
    """Whether the newest nights differ from those before, as far as a change among them would."""
    figures = np.asarray(values)
    before = figures[:-_CAUGHT_UP]
    if len(before) < 2 * _CAUGHT_UP:
        return True
    middle = np.median(before)
    spread = 1.4826 * np.median(np.abs(before - middle))  # a standard deviation, of normal noise
    return any(
        abs(np.median(figures[-nights:]) - middle) > _MOVED * 1.2533 * spread / math.sqrt(nights)
        for nights in _TAILS
    )


def _series(subject: Subject, history: Iterable[EarlierNight]) -> tuple[list[JudgedSeries], list[Verdict]]:
    """The metrics that have a history, and the verdicts of those that have none."""
    verdicts: list[Verdict] = []
    series: list[JudgedSeries] = []
    doubts = source.doubts(subject.run, subject.figures)
    for key, past in pasts(subject.run, subject.figures, subject.marks, history).items():
        if why := judge.not_judged(key, doubts.get(key, "")):
            verdicts.append(subject.verdict(key, Outcome.NOT_JUDGED, why))
        elif len(past.values) < FEWEST:
            count = len(past.values)
            runs = f"{count} earlier run{'s' * (count != 1)}" if count else "first run"
            why = past.why or f"{runs}: {FEWEST} are needed"
            accepted_alarm = past.alarm if past.alarm and not past.alarm.is_open else None
            verdict = replace(subject.verdict(key, Outcome.NOT_COMPARABLE, why), alarm=accepted_alarm)
            verdicts.append(replace(verdict, reason=Reason.FEW_NIGHTS))
        else:
            series.append(series_of(past, subject.verdict(key, Outcome.SAME), subject.run.id))
    return series, verdicts


@dataclass(frozen=True)
class JudgedSeries:
    """A metric's history: at least `FEWEST` values before that of the verdict, oldest first;
    `runs` are their ids and, last, that of the verdict. `alarm` is that of the night before.
    """

    verdict: Verdict
    values: Sequence[float]
    runs: Sequence[str]
    alarm: MetricAlarm | None = None
    ended: MetricAlarm | None = None
    """The last one that recovered."""


def series_of(track: Track, verdict: Verdict, run: str) -> JudgedSeries:
    """What a track has before the verdict of a run; an alarm that somebody ended is told once more."""
    told = track.alarm if track.alarm and not track.alarm.is_open else None
    verdict = replace(verdict, history=tuple(track.values[-HISTORY:]), alarm=told)
    return JudgedSeries(verdict, track.values, [*track.runs, run], track.alarm, track.ended)


def latest(
    series: Sequence[JudgedSeries],
    level: float = shift.LEVEL,
    others: int = 0,
    alike: int = 0,
    *,
    one_night: bool = True,
) -> list[Verdict]:
    """Judge the verdicts' own values by what came before, all together; an open alarm goes on. So many
    `others` did not change, and count among those that are compared. So many newest runs are `alike`.
    """
    ongoing = [_followed(row) or _from_zero(row) for row in series]
    # What is worse already may become worse again: its nights are a history of their own.
    mine = [
        row if verdict is None else _since(row, verdict) for row, verdict in zip(series, ongoing, strict=True)
    ]
    fresh = {place: row for place, row in enumerate(mine) if row}
    rows = [[*row.values, row.verdict.value or 0.0] for row in fresh.values()]
    sides = [_WORSE_SIDE[row.verdict.better] for row in fresh.values()]
    shifts = shift.judge(rows, level, sides, alike, one_night=one_night) if fresh else []
    # Others that have just begun to differ make a change likelier.
    new = [0.0 for v in ongoing if v and v.alarm and v.alarm.nights <= _NEW and v.outcome is not Outcome.SAME]
    compared = [*new, *(one.p for one in shifts), *(1.0 for _ in range(others))]
    limit = judge.limit(compared, level)
    told = {
        place: _fresh(row, one, one.p <= limit or one.at_once)
        for (place, row), one in zip(fresh.items(), shifts, strict=True)
    }
    return [_worst(verdict, told.get(place)) for place, verdict in enumerate(ongoing)]


def _since(row: JudgedSeries, verdict: Verdict) -> JudgedSeries | None:
    """The nights of an open loss, if they are enough to be a history."""
    alarm = verdict.alarm
    if verdict.outcome is not Outcome.WORSE or not alarm or alarm.unit or alarm.since not in row.runs:
        return None
    first = row.runs.index(alarm.since)
    if len(row.values) - first < FEWEST:
        return None
    return replace(row, values=row.values[first:], runs=row.runs[first:], alarm=alarm)


def _worst(verdict: Verdict | None, more: Verdict | None) -> Verdict:
    """The verdict on a figure of which an alarm is open or one has just been found, or both."""
    if verdict is None or more is None:
        return verdict or more  # type: ignore[return-value]
    # One odd night of a figure that is red anyway is no second loss.
    second = more.alarm if more.outcome is Outcome.WORSE else None
    lasts = second and not second.at_once and not second.slow and second.nights > 1
    return more if second and lasts and abs(second.size) >= _SMALLEST_SECOND else verdict


_WORSE_SIDE = {Direction.LOWER: 1, Direction.HIGHER: -1, Direction.NONE: 0}
_NEW = 3
"""Nights of an alarm that is new."""


def _followed(row: JudgedSeries) -> Verdict | None:
    """The verdict on a figure with an open alarm, or with one that is there again; None for one without."""
    value = row.verdict.value or 0.0
    values = [*row.values, value]
    if row.alarm and row.alarm.is_open:
        was = better_or_worse(row.alarm.size, row.verdict.better)
        alarm = life.followed(row.alarm, values, row.runs, better=was is Outcome.BETTER)
    elif row.ended and (back := life.again(row.ended, values, row.runs)):
        alarm = back
    else:
        return None
    outcome = better_or_worse(alarm.size, row.verdict.better)
    verdict = replace(row.verdict, baseline=alarm.level, alarm=alarm, why=alarm.story(), reason=Reason.ALARM)
    if alarm.state is AlarmState.RECOVERED:
        error = alarm.spread * abs(alarm.level)
        ended = judge.same_or_unknown(verdict, abs(value - alarm.level) + 1.96 * error)
        return replace(ended, why=alarm.story(), reason=Reason.ALARM)
    if alarm.undecided:
        why = f"{alarm.story()}; tonight does not bear it out, later nights decide"
        return replace(verdict, outcome=Outcome.UNKNOWN, why=why, reason=Reason.RECOVERING)
    return replace(verdict, outcome=outcome)


def _from_zero(row: JudgedSeries) -> Verdict | None:
    """The verdict on a figure that is usually 0 (losses, errors, underruns), of which there are no shares;
    None for others. It is a change where it never was anything, is three times as much as ever, or is
    something on three nights in a row, which chance makes of so few on one of a hundred; else suspected.
    """
    past, value = list(row.values[-REFERENCE:]), row.verdict.value or 0.0
    if sum(map(bool, past)) * 2 > len(past):
        return None
    verdict = replace(row.verdict, baseline=0.0)
    if abs(value) < (judge.SMALLEST_POINTS if verdict.unit == Unit.PERCENT else math.ulp(0.0)):
        return verdict
    newest, before = [*past, value][-_NEW:], past[: 1 - _NEW]
    seldom = (sum(map(bool, before)) / len(before)) ** _NEW <= _BY_CHANCE
    nights = _NEW if all(newest) and seldom else 1
    sure = abs(value) > _TIMES_ZERO * max(map(abs, past)) or nights == _NEW
    change, place = statistics.median(newest[-nights:]), len(row.runs) - nights
    # Its scatter is not known: as much as makes three nights tell of its end.
    since = (row.runs[place], row.runs[-1], row.runs[max(place - 1, 0)], nights)
    state = AlarmState.OPEN if sure else AlarmState.SUSPECTED
    alarm = MetricAlarm(state, *since, size=change, low=change, high=change, spread=abs(change) / 5)
    alarm = structs.replace(alarm, unit=verdict.unit)
    if not sure:
        return replace(verdict, outcome=Outcome.UNKNOWN, why=_SUSPECTED, reason=Reason.SUSPECTED, alarm=alarm)
    outcome = better_or_worse(change, verdict.better)
    return replace(verdict, outcome=outcome, why=alarm.story(), reason=Reason.ALARM, alarm=alarm)


_TIMES_ZERO = 3
"""Times the largest past figure of one that is usually 0."""
_BY_CHANCE = 0.01
_AS_BEFORE = "such figures were odd before, or the whole board is slow; later nights decide"
_SUSPECTED = f"suspected: {_AS_BEFORE}"


def _fresh(row: JudgedSeries, moved_by: shift.Shift, sure: bool) -> Verdict:
    verdict = replace(
        row.verdict,
        baseline=moved_by.level,
        tolerance=moved_by.seen * abs(moved_by.level) if math.isfinite(moved_by.seen) else None,
        p=moved_by.p,
    )
    value = moved_by.level + moved_by.off * abs(moved_by.level)
    moved = judge.changed(verdict, value)
    if moved_by.nights < _LASTING and abs(moved_by.off) < _SMALLEST_BRIEF:
        moved = verdict
    if moved.outcome is not Outcome.SAME and sure:
        under = row.alarm if row.alarm and row.alarm.is_open else None
        alarm = life.opened(moved_by, row.runs, under=under)
        # That of one night says nothing of a change that several nights showed.
        tolerance = moved.tolerance if abs(moved_by.off) > moved_by.seen else None
        return replace(moved, why=alarm.story(), reason=Reason.ALARM, alarm=alarm, tolerance=tolerance)
    if moved.outcome is not Outcome.SAME and moved_by.odd:
        alarm = life.opened(moved_by, row.runs, AlarmState.SUSPECTED)
        return replace(verdict, outcome=Outcome.UNKNOWN, why=_SUSPECTED, reason=Reason.SUSPECTED, alarm=alarm)
    lasting = f" in one night, {share_text(moved_by.lasting)} if it lasts"
    return judge.same_or_unknown(verdict, moved_by.proven * abs(moved_by.level), lasting, _AS_BEFORE)
