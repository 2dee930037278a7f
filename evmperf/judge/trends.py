"""A board's nights as trends: every figure over time, its levels, and where they changed."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from evmperf.judge import judge, nightly, steps
from evmperf.judge.accepted import Accepted
from evmperf.judge.nights import ANOTHER, EarlierNight, Past, Told, Track, likeness, twin_ratios
from evmperf.judge.past import FEWEST
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Verdict

_RECENT = 30
"""Points whose most common conditions are those that a trend is about."""
_NEAR = 5
"""Nights between a change point and the run that a change was accepted from: the change point of a
noisy series may be some nights off.
"""


class Point(NamedTuple):
    """A figure of one night: the index of its run, the mean of the samples, the samples, and
    what of its conditions differs from the trend's ("" for nothing); `ratio` is the trend's board's level
    as a multiple of that of the twin that was measured.
    """

    run: int
    value: float
    samples: tuple[float, ...]
    other: str
    ratio: float = 1.0

    @property
    def level(self) -> float:
        """The value without the level difference of a twin, as all comparing takes it."""
        return self.value * self.ratio


@dataclass(frozen=True)
class Level:
    """Nights of one level: runs `first` to `last` (indices), median and standard deviation of
    their figures, in the trend's unit.
    """

    first: int
    last: int
    value: float
    spread: float


@dataclass(frozen=True)
class Move:
    """Another level from the run `at` (index) on; `accepted` when somebody meant it."""

    at: int
    before: float
    after: float
    outcome: Outcome
    accepted: Accepted | None = None

    @property
    def change(self) -> float | None:
        """Relative change, None from a level of 0."""
        return self.after / self.before - 1 if self.before else None

    @property
    def worse(self) -> bool:
        """Whether somebody should look at it."""
        return self.outcome is Outcome.WORSE and not self.accepted


@dataclass
class Trend:
    """One metric of one case over a board's nights. `verdict` is the newest figure's, by the nights
    before; None where those are too few.
    """

    key: Key
    unit: str
    better: Direction
    points: list[Point]
    levels: list[Level] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    marks: list[Accepted] = field(default_factory=list)
    verdict: Verdict | None = None
    twins: Mapping[str, float] = field(default_factory=dict)
    """Other boards of the kind, by what shows that, with the ratio of their points."""
    doubt: str = ""
    """Why none of the figures can be right; they are not judged."""

    @property
    def alike(self) -> list[Point]:
        """The points that are compared with each other."""
        return [point for point in self.points if not point.other]

    @property
    def outcome(self) -> Outcome:
        """The newest figure's verdict in a word."""
        return self.verdict.outcome if self.verdict else Outcome.NOT_COMPARABLE

    def off_since(self, runs: Sequence[Run]) -> int | None:
        """The number of the run since which the newest figures are off; None if they are not, or if a
        change of level is the same change: the two are dated by different means.
        """
        if self.verdict is None or not self.verdict.since:
            return None
        at = max(number for number, run in enumerate(runs) if run.id == self.verdict.since)
        return None if any(abs(move.at - at) <= _NEAR for move in self.moves) else at


@dataclass
class Trends:
    """All trends of a board, over its runs, oldest first."""

    runs: list[Run]
    trends: dict[Key, Trend]


def of_nights(nights: Iterable[EarlierNight], marks: Sequence[Accepted] = ()) -> Trends:
    """Trends of one board's nights, oldest first."""
    runs: list[Run] = []
    judged: list[bool] = []
    pasts: dict[Key, list[tuple[int, Past]]] = {}
    alarms: dict[Key, dict[int, MetricAlarm]] = {}
    for number, night in enumerate(nights):
        runs.append(night.run)
        judged.append(night.judged)
        for key, alarm in night.alarms.items():
            alarms.setdefault(key, {})[number] = alarm
        for key, past in night.figures.items():
            pasts.setdefault(key, []).append((number, past))
    answers: Told = {}
    trends = {key: _trend(key, earlier, answers) for key, earlier in pasts.items()}
    first = judged.index(True) if any(judged) else len(runs)
    _add_levels(list(trends.values()), runs[:first], runs, marks, alarms)
    _add_verdicts(list(trends.values()), runs, judged, alarms)
    return Trends(runs, trends)


def _trend(key: Key, pasts: list[tuple[int, Past]], answers: Told) -> Trend:
    """The trend of a metric; `pasts` have the index of their run."""
    recent = Counter((id(past.facets), past.unit) for _, past in pasts[-_RECENT:])
    ours, unit = recent.most_common(1)[0][0]
    under = next(past.facets for _, past in reversed(pasts) if id(past.facets) == ours)
    points, twins = [], []
    for number, past in pasts:
        why, twin = likeness(answers, under, unit, past)
        why = why or past.doubt
        points.append(Point(number, past.value, past.samples, why))
        twins.append("" if why else twin)
    trend = Trend(key, unit, judge.better(key), points)
    if all(point.other for point in points):
        # Drawn as they are: no figure is left to hold them against.
        trend.doubt = next(past.doubt for _, past in reversed(pasts) if past.doubt)
        for place, (_, past) in enumerate(pasts):
            if points[place].other == past.doubt:
                points[place] = points[place]._replace(other="")
    if any(twins):
        places = [place for place, point in enumerate(points) if not point.other]
        trend.twins = twin_ratios([points[n].value for n in places], [twins[n] for n in places])
        for place, twin in enumerate(twins):
            if twin and (ratio := trend.twins[twin]):
                points[place] = points[place]._replace(ratio=ratio)
            elif twin:
                points[place] = points[place]._replace(other=f"{ANOTHER}{twin}")
    return trend


def _add_levels(
    trends: list[Trend],
    unjudged: Sequence[Run],
    runs: Sequence[Run],
    marks: Sequence[Accepted],
    alarms: Mapping[Key, Mapping[int, MetricAlarm]],
) -> None:
    """Levels and moves: those of the alarms that were kept; of nights that nobody judged, what is found."""
    found = steps.changes([[point.level for point in trend.alike] for trend in trends])
    for trend, places in zip(trends, found, strict=True):
        alike = trend.alike
        board = runs[alike[-1].run].board
        trend.marks = [mark for mark in marks if mark.covers(trend.key, board)]
        begun, over = _kept(alarms.get(trend.key, {}).values(), [runs[point.run].id for point in alike])
        begun |= {place for place in places if alike[place].run < len(unjudged)}
        begins = sorted(begun | over)
        for first, last in zip([0, *begins], [*begins, len(alike)], strict=True):
            values = [point.level for point in alike[first:last]]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            trend.levels.append(
                Level(alike[first].run, alike[last - 1].run, statistics.median(values), spread)
            )
        for before, after, place in zip(trend.levels, trend.levels[1:], begins, strict=False):
            if place in begun and (move := _move(trend, before, after, runs)):
                trend.moves.append(move)


def _kept(alarms: Iterable[MetricAlarm], runs: Sequence[str]) -> tuple[set[int], set[int]]:
    """The places of the runs with which changes began, and with which they were over, by their alarms."""
    newest = {alarm.since: alarm for alarm in alarms if alarm.state not in _NO_CHANGE}
    begun = {runs.index(since): alarm for since, alarm in newest.items() if since in runs[1:]}
    ended = {at + alarm.nights for at, alarm in begun.items() if alarm.state is AlarmState.RECOVERED}
    return set(begun), {place for place in ended - set(begun) if place < len(runs)}


_NO_CHANGE = (AlarmState.SUSPECTED, AlarmState.WITHDRAWN)


def _move(trend: Trend, before: Level, after: Level, runs: Sequence[Run]) -> Move | None:
    """The change between two levels, None for one that is too small for anybody to care."""
    verdict = Verdict(trend.key, Outcome.SAME, trend.unit, trend.better, after.value, before.value)
    outcome = judge.changed(verdict, after.value).outcome
    if outcome is Outcome.SAME:
        return None
    if judge.not_judged(trend.key):
        outcome = Outcome.NOT_JUDGED
    near = runs[max(0, after.first - _NEAR) : after.first + _NEAR + 1]
    meant = [m for m in trend.marks if near[0].started_ns <= m.since_ns <= near[-1].started_ns]
    return Move(after.first, before.value, after.value, outcome, meant[-1] if meant else None)


def _add_verdicts(
    trends: list[Trend],
    runs: Sequence[Run],
    judged: Sequence[bool],
    alarms: Mapping[Key, Mapping[int, MetricAlarm]],
) -> None:
    """Judge each newest figure, all together, as `evmperf check --against last:N` does."""
    told, series = [], []
    for trend in trends:
        alike, alarm_at = trend.alike, alarms.get(trend.key, {})
        if trend.marks:
            since = trend.marks[-1].since_ns
            alike = [point for point in alike if runs[point.run].started_ns >= since]
            meant = {run.id for run in runs if run.started_ns <= since}
            alarm_at = {number: alarm for number, alarm in alarm_at.items() if alarm.since not in meant}
        track = Track()
        for point in alike[:-1]:
            track.take(point.level, runs[point.run].id, alarm_at.get(point.run))
        if len(track.values) < FEWEST or trend.doubt or judge.not_judged(trend.key):
            continue
        verdict = Verdict(trend.key, Outcome.SAME, trend.unit, trend.better, alike[-1].level)
        kept = alarm_at.get(alike[-1].run)
        if kept and kept.state is AlarmState.WITHDRAWN:  # an A/B knows more than the nights
            trend.verdict = replace(
                verdict, outcome=Outcome.UNKNOWN, baseline=kept.level, why=kept.story(), alarm=kept
            )
            continue
        told.append(trend)
        series.append(nightly.series_of(track, verdict, runs[alike[-1].run].id))
    for trend, verdict in zip(told, nightly.newest(series, runs, judged[:-1]), strict=True):
        trend.verdict = verdict
