"""Mean power and energy of a board while the tools of a case work: a meter's readings over these times.

Energy is the integral of the power (trapezoids between readings, which are interpolated at both ends); mean
power is energy by time.
"""

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Direction, Metric, Sample
from evmperf.model.units import Unit

Series = Sequence[tuple[int, float]]
"""Readings of the board's supply by time: ns since the epoch, and W."""

_LEAST = 4
"""Readings inside a window from which it has an energy."""
_GAP = 0.25
"""The longest time without a reading, as a part of the window."""
_POWER = Metric("mean_power", Unit.WATT, Direction.NONE, "Mean power", 0, 1e9, required=False)
_ENERGY = Metric("energy", Unit.JOULE, Direction.NONE, "Energy", 0, 1e9, required=False)


class PowerWindow(NamedTuple):
    """When a tool worked for one repetition, in ns since the epoch; `shared` by rows of one execution."""

    repetition: int
    began_ns: int
    ended_ns: int
    shared: bool = False


def metric(name: str) -> Metric | None:
    """The metric of energy or power of that name; None for others."""
    return {one.name: one for one in (_POWER, _ENERGY)}.get(name)


def samples(windows: Sequence[PowerWindow], series: Series) -> tuple[list[Sample], list[str]]:
    """Power and energy of each repetition, over all its windows, and why some have none."""
    kept: list[Sample] = []
    missing: list[str] = []
    ordered = sorted(windows, key=lambda window: (window.repetition, window.began_ns))
    for repetition, group in itertools.groupby(ordered, key=lambda window: window.repetition):
        parts = list(group)
        try:
            joules = sum(used(series, window) for window in parts)
        except RefusedOutput as error:
            missing.append(str(error))
            continue
        watts = joules / sum((window.ended_ns - window.began_ns) / 1e9 for window in parts)
        ended_ns = parts[-1].ended_ns
        kept.append(Sample(_POWER.name, watts, str(_POWER.unit), repetition, ended_ns))
        if not any(window.shared for window in parts):
            kept.append(Sample(_ENERGY.name, joules, str(_ENERGY.unit), repetition, ended_ns))
    return kept, list(dict.fromkeys(missing))


def used(series: Series, window: PowerWindow) -> float:
    """Energy in a window, in J; raises RefusedOutput where the readings do not carry it."""
    span_ns = window.ended_ns - window.began_ns
    first = bisect.bisect_right(series, window.began_ns, key=lambda reading: reading[0])
    last = bisect.bisect_left(series, window.ended_ns, key=lambda reading: reading[0])
    inside = series[first:last]
    if span_ns <= 0 or len(inside) < _LEAST or not first or last == len(series):
        seen = f"{len(inside)} readings of the meter in a window of {span_ns / 1e9:.2f} s"
        raise RefusedOutput(f"no energy: {seen}, and readings before and after it are needed, too")
    gap_ns = max(b[0] - a[0] for a, b in itertools.pairwise(series[first - 1 : last + 1]))
    if gap_ns > max(_GAP * span_ns, 1):
        gap = f"{gap_ns / 1e9:.2f} s between two readings of the meter"
        raise RefusedOutput(f"no energy: {gap} in a window of {span_ns / 1e9:.2f} s")
    begin = _between(series[first - 1], series[first], window.began_ns)
    end = _between(series[last - 1], series[last], window.ended_ns)
    pairs = itertools.pairwise([begin, *inside, end])
    return sum((b[0] - a[0]) / 1e9 * (a[1] + b[1]) / 2 for a, b in pairs)


def _between(before: tuple[int, float], after: tuple[int, float], at_ns: int) -> tuple[int, float]:
    """The reading between two."""
    part = (at_ns - before[0]) / max(after[0] - before[0], 1)
    return at_ns, before[1] + part * (after[1] - before[1])
