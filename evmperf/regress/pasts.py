"""The comparable history of each metric of a run, and why some of it was left out."""

from __future__ import annotations

import bisect
import statistics
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evmperf.model import comparable as facets
from evmperf.model.figures import Figure, Key
from evmperf.model.run import Run
from evmperf.regress import accepted
from evmperf.regress.accepted import Accepted
from evmperf.regress.nights import EarlierNight, Told, likeness
from evmperf.regress.spread import FEWEST

_AROUND = 3
"""Nights of a board, either way, that say where it was when a twin was measured."""


@dataclass
class Earlier:
    """Values of one metric, oldest first, with the ids of their runs; `twins` says of each what
    shows that it is of another board of the kind ("" for this one), `why` why values were left out,
    `alarm` is the last run that was judged, if an alarm was raised about it.
    """

    unit: str
    facets: facets.Facets
    mark: Accepted | None
    values: array[float] = field(default_factory=lambda: array("d"))
    runs: list[str] = field(default_factory=list)
    twins: list[str] = field(default_factory=list)
    why: str = ""
    alarm: str = ""
    alarmed: tuple[float, float] = (0.0, 0.0)
    """Its value, and the relative change."""

    def closed(self, value: float) -> str:
        """The run whose alarm went away if a figure is that: it is nearer to what was before."""
        was, change = self.alarmed
        back = was - was / (1 + change) if change > -1 else was
        return self.alarm if self.alarm and (was - value) * back > back**2 / 2 else ""

    def keep(self, places: Sequence[int]) -> None:
        """Forget all other nights."""
        self.values = array("d", [self.values[place] for place in places])
        self.runs = [self.runs[place] for place in places]
        self.twins = [self.twins[place] for place in places]

    def begin(self, since: str) -> None:
        """Forget the nights before a confirmed change: what came after it is the level."""
        if since in self.runs:
            self.keep(range(self.runs.index(since), len(self.runs)))
            self.why = f"a change since {since} is confirmed: {FEWEST} runs of the new level are needed"

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

    found = {}
    for twin in dict.fromkeys(filter(None, twins)):
        theirs = [place for place, other in enumerate(twins) if other == twin]
        known = min(len(own), len(theirs)) >= FEWEST and min(values) > 0
        found[twin] = statistics.median(around(place) / values[place] for place in theirs) if known else 0.0
    return found


def pasts(
    run: Run, figures: Mapping[Key, Figure], marks: Sequence[Accepted], history: Iterable[EarlierNight]
) -> dict[Key, Earlier]:
    """The history of each metric; the nights are gone through once, as a year of them is long."""
    shared: dict[tuple[tuple[str, str], ...], facets.Facets] = {}
    found: dict[Key, Earlier] = {}
    for key, figure in figures.items():
        under = facets.of_result(run, figure.result)
        alike = shared.setdefault(tuple(under.items()), under)
        found[key] = Earlier(figure.unit, alike, accepted.latest(list(marks), key, run.board))
    for night in history:
        told: Told = {}
        run, alarms = night.run, night.told
        for key, past in found.items():
            there = night.figures.get(key)
            if there is None:
                continue
            if past.mark and run.started_ns < past.mark.since_ns:
                past.why = f"accepted since {past.mark.since}: {past.mark.why}"
                continue
            why, twin = likeness(told, past.facets, past.unit, there)
            if there.doubt or why:
                past.why = there.doubt or why
                continue
            past.values.append(there.value)
            past.runs.append(run.id)
            past.twins.append(twin)
            if alarms and (said := alarms.get(key)):
                past.alarm = run.id if said.alarm else ""
                past.alarmed = there.value, said.alarm
                past.begin(said.level_since)
    for past in found.values():
        past.level_twins()
    return found
