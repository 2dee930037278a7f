"""The page of a case: every sample of every night, with what changed when."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from evmperf.judge import judge
from evmperf.judge.nights import ANOTHER
from evmperf.judge.past import FEWEST
from evmperf.judge.published import source
from evmperf.judge.trends import Point, Trend
from evmperf.measure.state import buses
from evmperf.model import outlets
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome
from evmperf.publish.site.pages import Folder, is_published, slug

_LARGEST = 900_000
"""Bytes of a page's data, at most."""
_FEW = 3
"""Samples that stand for all of a night where there are too many: lowest, median, highest."""


@dataclass(frozen=True)
class SiteCase:
    """Whose page it is; `before` and `after` are the cases beside it, "" for none."""

    board: str
    benchmark: str
    title: str
    """The benchmark's, for people."""
    label: str
    before: str
    after: str


def write(folder: Folder, case: SiteCase, trends: Sequence[Trend], runs: Sequence[Run]) -> None:
    """Write the page of one case; raises OSError when the disk does not take it."""
    data, shortened = fitting(trends, runs)
    published = any(map(is_published, runs))
    places = source.places(case.board).get((case.benchmark, case.label), ()) if published else ()
    place = "/".join(map(slug, (case.board, case.benchmark, case.label)))
    folder.page(
        f"{place}.html",
        "case.html.j2",
        case=case,
        trends=trends,
        runs=runs,
        data=data,
        shortened=shortened,
        places=places,
        night="release" if published else "night",
        shares=["" if case.board.startswith("virtual") else _share(case.board, trend) for trend in trends],
        outcome=outcome,
        reason=reason,
        another=ANOTHER,
    )


def outcome(trend: Trend) -> Outcome:
    """The newest figure's verdict in a word."""
    if trend.verdict is None and (trend.doubt or judge.not_judged(trend.key)):
        return Outcome.NOT_JUDGED
    return trend.outcome


def reason(trend: Trend) -> str:
    """Why the newest figure has no other verdict, in words."""
    if trend.verdict:
        return trend.verdict.why
    if why := trend.doubt or judge.not_judged(trend.key):
        return why
    earlier = len(trend.alike) - 1
    runs = f"{earlier} earlier run{'s' * (earlier != 1)}" if earlier else "first run"
    return f"{runs}: {FEWEST} are needed"


def _share(board: str, trend: Trend) -> str:
    """The newest figure's share of what the best mode of its bus can carry."""
    return buses.share_in_words(*trend.key, unit=trend.unit, mean=trend.alike[-1].value, board=board)


def fitting(trends: Sequence[Trend], runs: Sequence[Run]) -> tuple[str, str]:
    """The data of a page as JSON, and what was left out of it for its size, in a sentence."""
    text = _encoded([_series(trend, runs) for trend in trends])
    if len(text) <= _LARGEST:
        return text, ""
    text = _encoded([_series(trend, runs, most=_FEW) for trend in trends])
    sentence = "Of each night only the lowest and highest sample and the median are shown"
    first = 0
    while len(text) > _LARGEST:
        # The share of nights that will fit, and a little less.
        first += max(1, int((len(runs) - first) * (1.05 - _LARGEST / len(text))))
        text = _encoded([_series(trend, runs, _FEW, first) for trend in trends])
    return text, f"{sentence}{f', and the newest {len(runs) - first} nights' if first else ''}."


def _encoded(value: object) -> str:
    return outlets.script(msgspec.json.encode(value).decode())


def _series(trend: Trend, runs: Sequence[Run], most: int = 0, first: int = 0) -> dict[str, object]:
    """One metric: each night's run (index) and samples, and the levels of enough nights."""
    points = [point for point in trend.points if point.run >= first]
    verdict, at, off = trend.verdict, trend.off_since(runs), None
    if verdict and at is not None:
        off = (at, str(verdict.outcome), None if verdict.change is None else _short(verdict.change))
    return {
        "metric": trend.key.metric,
        "unit": trend.unit,
        "runs": [point.run for point in points],
        "values": _values(points, most),
        "other": {number: point.other for number, point in enumerate(points) if point.other},
        "levels": [
            (max(level.first, first), level.last, _short(level.value), _short(level.spread))
            for level in trend.levels
            if level.last >= first and level.last - level.first >= FEWEST
        ],
        "moves": [
            (move.at, "accepted" if move.accepted else str(move.outcome), move.change)
            for move in trend.moves
            if move.at >= first
        ],
        "off": off,
        "accepted": [
            (number, mark.why)
            for mark in trend.marks
            for number, run in enumerate(runs)
            if run.id == mark.since and number >= first
        ],
    }


def _values(points: Sequence[Point], most: int) -> list[float | list[float]]:
    """Of each night its sample, or its samples."""
    nights: list[float | list[float]] = []
    for point in points:
        many = bool(most) and len(point.samples) > most
        few = (min(point.samples), point.value, max(point.samples)) if many else point.samples
        short = [_short(value) for value in few]
        nights.append(short[0] if len(short) == 1 else short)
    return nights


def _short(value: float) -> float:
    """In six digits, which a plot does not exhaust."""
    return float(f"{value:.6g}")
