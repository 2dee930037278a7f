"""A run judged by single figures: of a release, another run, a guide, or of several runs."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from evmperf.judge import accepted, beside, judge
from evmperf.judge.judge import Subject
from evmperf.judge.nights import unlike
from evmperf.judge.published import source
from evmperf.model import comparable as facets
from evmperf.model.figures import Figure, Key
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Reason, Verdict, by_severity

_FEWEST_RUNS = 2
_ENOUGH_SAMPLES = 5
"""Samples of one run that tell something of how much it scatters."""
_PACKETS_OFF = 0.6
"""Thousands of packets a second, which are printed whole."""
_UDP_HEADERS = 46
"""Ethernet, IPv4, UDP and frame check sequence, in bytes."""
_MORE_RUNS = "its scatter is unknown; name more runs (--a, --b), or use evmperf ab"


def against_figures(
    subject: Subject,
    baseline: Mapping[Key, tuple[Run, Figure]],
    spreads: beside.Spreads = MappingProxyType({}),
    own: beside.Spreads | None = None,
    *,
    level: float = judge.LEVEL,
    several: Callable[[Key], Sequence[Sequence[float]]] | None = None,
) -> list[Verdict]:
    """Judge a run by single figures, each with its run: a release, another run, a guide; or, with
    `several`, by what the runs of both sides have of a metric. `own` are the spreads from run to run on
    this board, where a figure must have one to be judged, or samples enough.
    """
    verdicts: list[Verdict] = []
    open_ones: list[tuple[Verdict, beside.ToldBeside]] = []
    theirs = {key: figure for key, (_, figure) in baseline.items()}
    their_run = next((run for run, _ in baseline.values()), subject.run)
    doubts = source.doubts(their_run, theirs) | source.doubts(subject.run, subject.figures)
    for key, figure in subject.figures.items():
        if key not in baseline:
            verdict = subject.verdict(key, Outcome.NOT_COMPARABLE, "the baseline has none")
            verdicts.append(replace(verdict, reason=Reason.NO_COUNTERPART))
            continue
        run, other = baseline[key]
        verdict = replace(subject.verdict(key, Outcome.SAME), baseline=other.mean)
        mark = accepted.latest(subject.marks, key, subject.run.board)
        sides = several(key) if several else ()
        if sides:
            before, after = map(statistics.fmean, sides)
            verdict = replace(verdict, value=after, baseline=before)
        if why := _incomparable(subject, figure, run, theirs):
            verdicts.append(replace(verdict, outcome=Outcome.NOT_COMPARABLE, why=why))
        elif why := judge.not_judged(key, doubts.get(key, "")):
            verdicts.append(replace(verdict, outcome=Outcome.NOT_JUDGED, why=why))
        elif mark and run.started_ns < mark.since_ns <= subject.run.started_ns:
            verdicts.append(replace(verdict, why=f"accepted since {mark.since}: {mark.why}"))
        elif why := _unsure(figure, other, own, sides):
            verdicts.append(replace(verdict, outcome=Outcome.UNKNOWN, why=why))
        else:
            beside_it = beside.two_samples(*sides) if sides else beside.compare(figure, other, spreads)
            open_ones.append((replace(verdict, p=beside_it.p), beside_it))
    limit = judge.limit([beside_it.p for _, beside_it in open_ones if beside_it.p is not None], level)
    for verdict, beside_it in open_ones:
        limits = beside_it.at(limit)
        moved = replace(verdict, tolerance=limits.tolerance)
        moved = judge.changed(moved, moved.value) if limits.differ else moved
        if moved.outcome is Outcome.SAME:
            off = abs((moved.value or 0.0) - (moved.baseline or 0.0))
            moved = judge.same_or_unknown(moved, off + limits.error)
        verdicts.append(moved)
    return list(by_severity(verdicts))


def gone(subject: Subject, theirs: Iterable[Key]) -> dict[str, int]:
    """How many figures of a baseline the run does not have, by benchmark."""
    return dict(Counter(key.benchmark for key in theirs if key not in subject.figures))


def between(a: Sequence[Subject], b: Sequence[Subject], level: float = judge.LEVEL) -> list[Verdict]:
    """Judge several runs by several others: Student's t on one mean a run. The verdicts' values
    are the means of both sides.
    """
    theirs = {key: (subject.run, figure) for subject in a for key, figure in subject.figures.items()}

    def several(key: Key) -> list[list[float]]:
        return [[s.figures[key].mean for s in side if key in s.figures] for side in (a, b)]

    return against_figures(b[-1], theirs, level=level, several=several)


def _unsure(
    figure: Figure, other: Figure, own: beside.Spreads | None, sides: Sequence[Sequence[float]]
) -> str:
    """Why figures cannot be told apart, whatever they are."""
    if sides:
        return "" if min(map(len, sides)) >= _FEWEST_RUNS else _MORE_RUNS
    if own is None or figure.key in own or figure.published or other.published:
        return ""
    fewest = min(figure.count, other.count)
    return "" if fewest >= _ENOUGH_SAMPLES else f"{fewest} of a side: {_MORE_RUNS}"


def _incomparable(subject: Subject, figure: Figure, run: Run, theirs: Mapping[Key, Figure]) -> str:
    """Why a figure and a baseline's are not compared: conditions, units, or UDP figures' payloads."""
    other = theirs[figure.key]
    ours, its = facets.of_result(subject.run, figure.result), facets.of_result(run, other.result)
    if why := unlike(ours, figure.unit, its, other.unit):
        return why
    payloads = [payload(side, figure.key) for side in (subject.figures, theirs)]
    differs = all(payloads) and payloads[0] != payloads[1]
    return f"payload differs ({payloads[0]} bytes, not {payloads[1]})" if differs else ""


def payload(figures: Mapping[Key, Figure], key: Key) -> int | None:
    """The payload of a row of UDP datagrams, in bytes, as throughput and packets show it: guides
    head rows with the frame, and send that much less the headers or, in some releases, that much.
    0 for neither, None where it cannot be told.
    """
    throughput, packets = (figures.get(key._replace(metric=metric)) for metric in ("throughput", "kpps"))
    if "_udp_" not in key.benchmark or not key.case.isdigit() or not throughput or not packets:
        return None
    sizes = (int(key.case) - _UDP_HEADERS, int(key.case))
    off = [abs(packets.mean * size - throughput.mean * 1e3 / 8) for size in sizes]
    fitting = [size for size, by in zip(sizes, off, strict=True) if by <= _PACKETS_OFF * size]
    return fitting[0] if len(fitting) == 1 else None if fitting else 0
