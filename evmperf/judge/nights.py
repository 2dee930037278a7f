"""A board's earlier runs as one number a metric and run, the mean of its samples; and of them the
comparable history of each metric of a run.

A year of nights is a quarter of a gigabyte of samples, so only what is needed is decoded.
"""

from __future__ import annotations

import bisect
import math
import statistics
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from evmperf.judge import accepted
from evmperf.judge.accepted import Accepted
from evmperf.judge.past import FEWEST
from evmperf.judge.published import source
from evmperf.measure.runs.history import StoredRun
from evmperf.measure.runs.spool import RECORDS, VERDICTS, leave_out
from evmperf.model import comparable as facets
from evmperf.model import limits
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.comparable import Facets
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Result
from evmperf.model.run import Run


class Past(NamedTuple):
    """One metric in one earlier run: its mean in `unit`, what it was measured under, and its samples.

    Figures measured alike share their `facets`, the very same object, those of other nights, too.
    """

    value: float
    unit: str
    facets: Facets
    samples: tuple[float, ...]
    doubt: str = ""
    """Why a published figure cannot be right; "" for all others. Nothing is judged by it."""


@dataclass(frozen=True)
class EarlierNight:
    """One earlier run, and the alarms of its figures as they were after its judging, if it was judged."""

    run: Run
    figures: Mapping[Key, Past]
    alarms: Mapping[Key, MetricAlarm] = field(default_factory=dict)
    judged: bool = False


_Taken = tuple[Key, str, tuple[float, ...], facets.ComparableCase | Result]
"""A figure of a run with no more than what judging needs: its samples in their unit, and what its case was
measured under; cases measured alike share that, the very same object.
"""


class _Sample(msgspec.Struct, gc=False):
    metric: str
    value: limits.Real
    unit: str


class _Line(msgspec.Struct, gc=False):
    """What judging needs of a record; everything else is skipped while decoding."""

    record: str
    benchmark: str = ""
    case: str = ""
    version: limits.Ordinal = 0
    driver: str = ""
    profile: str = ""
    samples: list[_Sample] = []
    tools: dict[str, str] = {}
    conditions: msgspec.Raw = msgspec.Raw(b"{}")
    metric: str = ""
    alarm: MetricAlarm | None = None


def nights(runs: Iterable[StoredRun]) -> Iterator[EarlierNight]:
    """Runs as nights, one after the other, so that no more than one is held. Nothing is judged by a run with
    damaged results.
    """
    decoder = msgspec.json.Decoder(_Line)
    shared: _Shared = {}
    for entry in runs:
        if entry.folder is None:
            yield EarlierNight(entry.run, _of_results(entry.run, entry.results(), shared))
            continue
        try:
            # A run that measured nothing has no file; a last line cut by a crash is left out.
            measured = decoder.decode_lines(_whole_lines(entry.folder / RECORDS))
            # Versions before 0.3 kept verdicts among the results.
            told = [line for line in measured if line.record == "verdict"]
            told += _verdicts(entry.folder / VERDICTS, decoder)
            alarms = {Key(line.benchmark, line.case, line.metric): line.alarm for line in told if line.alarm}
            taken = _of_brief(entry.run, _taken(measured), shared)
            night = EarlierNight(entry.run, taken, alarms, bool(told))
        except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            leave_out(f"{entry.folder}: its results are damaged ({error})")
        else:
            yield night


def _whole_lines(file: Path) -> bytes:
    return file.read_bytes().rpartition(b"\n")[0] if file.exists() else b""


def _verdicts(file: Path, decoder: msgspec.json.Decoder[_Line]) -> Iterator[_Line]:
    """The verdicts of a run: a bad one is left out alone."""
    for number, line in enumerate(_whole_lines(file).splitlines(), 1):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            leave_out(f"{file}, line {number}: the verdict is damaged ({error}): run evmperf check again")


def _taken(lines: Iterable[_Line]) -> Iterator[_Taken]:
    shared: dict[object, facets.ComparableCase] = {}
    for line in lines:
        if line.record != "result":
            continue
        alike = (line.driver, line.profile, line.version, *line.tools, bytes(line.conditions))
        case = shared.get(alike)
        if case is None:
            conditions = msgspec.json.decode(line.conditions, type=dict[str, Any])
            case = facets.ComparableCase(line.driver, line.profile, line.version, line.tools, conditions)
            shared[alike] = case
        values: dict[tuple[str, str], list[float]] = {}
        for sample in line.samples:
            values.setdefault((sample.metric, sample.unit), []).append(sample.value)
        for (metric, unit), samples in values.items():
            yield Key(line.benchmark, line.case, metric), unit, tuple(samples), case


def unlike(ours: Facets, unit: str, theirs: Facets, their_unit: str) -> str:
    """Why two figures are not comparable, "" if they are."""
    why = facets.difference(ours, theirs)
    return why or (f"unit differs ({unit}, not {their_unit})" if unit != their_unit else "")


Told = dict[tuple[int, int, str], tuple[str, str, Facets]]
"""What was said of pairs of conditions, and theirs: most figures of a board were measured alike."""


def likeness(answers: Told, ours: Facets, unit: str, past: Past) -> tuple[str, str]:
    """Why an earlier figure is not comparable, "" if it is; and what shows that it is of another board of
    the kind. Each pair of conditions is compared once: ours must live as long as `answers`.
    """
    theirs = past.facets
    pair = (id(ours), id(theirs), unit + past.unit)
    if pair not in answers:
        answers[pair] = unlike(ours, unit, theirs, past.unit), facets.twin(ours, theirs), theirs
    return answers[pair][:2]


_Shared = dict[tuple[tuple[str, str], ...], Facets]


def _of_brief(run: Run, figures: Iterable[_Taken], shared: _Shared) -> dict[Key, Past]:
    past_of: dict[Key, Past] = {}
    cases: dict[int, Facets] = {}
    for key, unit, samples, case in figures:
        under = cases.get(id(case))
        if under is None:
            mine = facets.of_run(run) | facets.of_case(run, case)
            under = cases[id(case)] = shared.setdefault(tuple(mine.items()), mine)
        before = past_of.get(key)
        another_execution = before and (before.unit, before.facets) == (unit, under)
        values = (*before.samples, *samples) if before and another_execution else samples
        past_of[key] = Past(math.fsum(values) / len(values), unit, under, values)
    return past_of


def _of_results(run: Run, results: Iterable[Result], shared: _Shared) -> dict[Key, Past]:
    figure_of = figures(results)
    taken = (
        (key, figure.unit, tuple(figure.result.values(key.metric)) or (figure.mean,), figure.result)
        for key, figure in figure_of.items()
    )
    past_of = _of_brief(run, taken, shared)
    for key, why in (source.doubts(run, figure_of) if run.kind == source.KIND else {}).items():
        past_of[key] = past_of[key]._replace(doubt=why)
    return past_of


_AROUND = 3
"""Nights of a board, either way, that say where it was when a twin was measured."""


@dataclass
class Track:
    """Figures of one metric, oldest first, with the ids of their runs; `alarm` is that of the newest judged
    night, if it is open or ended by somebody's word, `ended` the last one that recovered.
    """

    values: array[float] = field(default_factory=lambda: array("d"))
    runs: list[str] = field(default_factory=list)
    alarm: MetricAlarm | None = None
    ended: MetricAlarm | None = None

    def take(self, value: float, run: str, alarm: MetricAlarm | None) -> None:
        """One more night, and its alarm as judging left it. Nights of a loss that is over are no history, but
        a few odd nights are the metric's own. What is accepted is the level, at which the nights before tell
        how much the figure scatters.
        """
        self.values.append(value)
        self.runs.append(run)
        if alarm is None or alarm.state is AlarmState.SUSPECTED:
            return
        self.alarm = alarm if alarm.is_open else None
        first = self.runs.index(alarm.since) if alarm.since in self.runs else 0
        if alarm.state is AlarmState.RECOVERED:
            self.ended = alarm if alarm.nights > 1 else self.ended
            if alarm.nights >= FEWEST:
                self.keep([*range(first), len(self.runs) - 1])
        elif alarm.state is AlarmState.LEVEL:
            self.keep(range(first, len(self.runs)))
        elif alarm.state is AlarmState.ACCEPTED:
            self.accept(alarm)

    def accept(self, alarm: MetricAlarm) -> None:
        """Take a change for the level: nights before it tell, moved to it, how much the figure scatters."""
        if alarm.under:
            self.accept(alarm.under)
        for place in range(self.runs.index(alarm.since) if alarm.since in self.runs else 0):
            old = self.values[place]
            self.values[place] = old + alarm.size if alarm.unit else old * (1 + alarm.size)
        self.ended = None

    def keep(self, places: Sequence[int]) -> None:
        """Forget all other nights."""
        self.values = array("d", [self.values[place] for place in places])
        self.runs = [self.runs[place] for place in places]


@dataclass
class Earlier(Track):
    """The history of one metric of a run; `twins` says of each figure what shows that it is of another board
    of the kind ("" for this one), `why` why figures were left out.
    """

    unit: str = ""
    facets: facets.Facets = field(default_factory=dict)
    mark: Accepted | None = None
    twins: list[str] = field(default_factory=list)
    why: str = ""

    def keep(self, places: Sequence[int]) -> None:
        """Forget all other nights."""
        super().keep(places)
        self.twins = [self.twins[place] for place in places]

    def level_twins(self) -> None:
        """Take the level differences of twins out; twins of which too little is known are left out."""
        ratios = {"": 1.0, **twin_ratios(self.values, self.twins)}
        for place, twin in enumerate(self.twins):
            self.values[place] *= ratios[twin] or 1.0
        for twin in (twin for twin, ratio in ratios.items() if not ratio):
            self.why = f"{ANOTHER}{twin}"
            self.keep([place for place, other in enumerate(self.twins) if other != twin])


ANOTHER = "another individual: "


def twin_ratios(values: Sequence[float], twins: Sequence[str]) -> dict[str, float]:
    """This board's level as a multiple of each twin's: the median of the twin's nights against the nights
    of this board around them; 0 for a twin of which too little is known. `twins` names each value's
    twin, "" for this board.
    """
    own = [place for place, twin in enumerate(twins) if not twin]

    def around(place: int) -> float:
        at = bisect.bisect(own, place)
        return statistics.median(values[other] for other in own[max(at - _AROUND, 0) : at + _AROUND])

    differences = {}
    for twin in dict.fromkeys(filter(None, twins)):
        theirs = [place for place, other in enumerate(twins) if other == twin]
        enough = min(len(own), len(theirs)) >= FEWEST and min(values) > 0
        differences[twin] = (
            statistics.median(around(place) / values[place] for place in theirs) if enough else 0.0
        )
    return differences


def meant(alarm: MetricAlarm | None, mark: Accepted | None, began: Mapping[str, int]) -> bool:
    """Whether an alarm is of a change that somebody accepted; `began` is when each run did, oldest first. The
    date of an alarm may be some nights late.
    """
    if mark is None or alarm is None or not alarm.is_open or alarm.since not in began:
        return False
    return sum(mark.since_ns < one <= began[alarm.since] for one in began.values()) <= NEAR


NEAR = 3
"""Nights by which the dates of one change in several figures may differ."""


def pasts(
    run: Run, figures: Mapping[Key, Figure], marks: Sequence[Accepted], history: Iterable[EarlierNight]
) -> dict[Key, Earlier]:
    """The history of each metric; the nights are gone through once, as a year of them is long."""
    shared: dict[tuple[tuple[str, str], ...], facets.Facets] = {}
    earlier: dict[Key, Earlier] = {}
    for key, figure in figures.items():
        under = facets.of_result(run, figure.result)
        alike = shared.setdefault(tuple(under.items()), under)
        mark = accepted.latest(marks, key, run.board)
        earlier[key] = Earlier(unit=figure.unit, facets=alike, mark=mark)
    told_of: Told = {}
    began: dict[str, int] = {}
    for night in history:
        run = night.run
        began[run.id] = run.started_ns
        for key, past in earlier.items():
            past_figure, alarm = night.figures.get(key), night.alarms.get(key)
            if past_figure is None:
                continue
            why, twin = likeness(told_of, past.facets, past.unit, past_figure)
            if past_figure.doubt or why:
                past.why = past_figure.doubt or why
                continue
            past.twins.append(twin)
            past.take(past_figure.value, run.id, alarm)
    for past in earlier.values():
        if past.alarm and meant(past.alarm, past.mark, began):
            # What somebody accepts is over, and said once.
            past.accept(past.alarm)
            past.alarm = replace(past.alarm, state=AlarmState.ACCEPTED)
        past.level_twins()
    return earlier
