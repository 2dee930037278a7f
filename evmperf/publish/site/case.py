"""The page of a case: every sample of every night, with what changed when."""

from collections.abc import Sequence

import msgspec

from evmperf.judge import judge
from evmperf.judge.nights import ANOTHER
from evmperf.judge.past import FEWEST
from evmperf.judge.published import source
from evmperf.judge.trends import Trend
from evmperf.measure.state import buses
from evmperf.model import outlets
from evmperf.model.run import Run
from evmperf.model.units import counted
from evmperf.model.verdict import Outcome
from evmperf.publish.site.pages import Folder, is_published, slug

_LARGEST = 900_000
"""Bytes of a page's data, at most."""


def write(
    folder: Folder, board: str, trends: Sequence[Trend], runs: Sequence[Run], beside: tuple[str, str]
) -> None:
    """Write the page of one case; `beside` are the cases before and after it, "" for none. Raises OSError
    when the disk does not take it.
    """
    benchmark, label, _ = trends[0].key
    data, shortened = fitting(trends, runs)
    published = any(map(is_published, runs))
    folder.page(
        "/".join(map(slug, (board, benchmark, label))) + ".html",
        "case.html.j2",
        board=board,
        benchmark=benchmark,
        label=label,
        beside=beside,
        trends=trends,
        runs=runs,
        data=data,
        shortened=shortened,
        places=source.places(board).get((benchmark, label), ()) if published else (),
        night="release" if published else "night",
        shares=[
            buses.share_in_words(*trend.key, unit=trend.unit, mean=trend.alike[-1].value, board=board)
            for trend in ([] if board.startswith("virtual") else trends)
        ],
        told=told,
        another=ANOTHER,
    )


def told(trend: Trend) -> tuple[Outcome, str]:
    """The newest figure's verdict in a word, and why it has no other, in words."""
    if trend.verdict:
        return trend.outcome, trend.verdict.why
    if why := trend.doubt or judge.not_judged(trend.key):
        return Outcome.NOT_JUDGED, why
    earlier = len(trend.alike) - 1
    runs = counted(earlier, "earlier run") if earlier else "first run"
    return trend.outcome, f"{runs}: {FEWEST} are needed"


def fitting(trends: Sequence[Trend], runs: Sequence[Run]) -> tuple[str, str]:
    """The data of a page as JSON, and what was left out of it for its size, in a sentence."""
    text = _encoded([_series(trend, runs) for trend in trends])
    if len(text) <= _LARGEST:
        return text, ""
    text = _encoded([_series(trend, runs, few=True) for trend in trends])
    sentence = "Of each night only the lowest and highest sample and the mean are shown"
    first = 0
    while len(text) > _LARGEST:
        # The share of nights that will fit, and a little less.
        first += max(1, int((len(runs) - first) * (1.05 - _LARGEST / len(text))))
        text = _encoded([_series(trend, runs, True, first) for trend in trends])
    return text, f"{sentence}{f', and the newest {len(runs) - first} nights' if first else ''}."


def _encoded(value: object) -> str:
    return outlets.script(msgspec.json.encode(value).decode())


def _series(trend: Trend, runs: Sequence[Run], few: bool = False, first: int = 0) -> dict[str, object]:
    """One metric: each night's run (index), mean and number of samples, the samples (the lowest and highest
    if `few`), and the levels of enough nights.
    """
    points = [point for point in trend.points if point.run >= first]
    samples = (
        (min(one.samples), max(one.samples)) if few and len(one.samples) > 2 else one.samples
        for one in points
    )
    verdict, at = trend.verdict, trend.off_since(runs)
    return {
        "metric": trend.key.metric,
        "unit": trend.unit,
        "runs": [point.run for point in points],
        "figures": [(_short(point.value), len(point.samples)) for point in points],
        "values": [[_short(value) for value in of_night] for of_night in samples],
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
        "off": (at, str(verdict.outcome), verdict.change) if verdict and at is not None else None,
        "accepted": [
            (number, mark.why)
            for mark in trend.marks
            for number, run in enumerate(runs)
            if run.id == mark.since and number >= first
        ],
    }


def _short(value: float) -> float:
    """In six digits, which a plot does not exhaust."""
    return float(f"{value:.6g}")
