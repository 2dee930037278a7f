"""Mean power and energy of a board while the tools of a case work: a meter's readings over these times.

Energy is the integral of the power (trapezoids between readings, which are interpolated at both ends); mean
power is energy by time.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Direction, Metric, Sample
from evmperf.model.units import Unit

Series = Sequence[tuple[int, float]]
"""Readings of the board's supply by time: ns since the epoch, and W."""

_GAP = 0.25
"""The time between two readings is shorter, as a part of the window: so many as make an energy are in it."""
_POWER = Metric("mean_power", Unit.WATT, Direction.NONE, "Mean power", 0, 1e9, required=False)
_ENERGY = Metric("energy", Unit.JOULE, Direction.NONE, "Energy", 0, 1e9, required=False)
METRICS = {one.name: one for one in (_POWER, _ENERGY)}


class PowerWindow(NamedTuple):
    """When a tool worked for one repetition, in ns since the epoch; `shared` by rows of one execution."""

    repetition: int
    began_ns: int
    ended_ns: int
    shared: bool = False


def samples(windows: Sequence[PowerWindow], series: Series) -> tuple[list[Sample], str]:
    """Power and energy of each repetition, over all its windows, and why one has none."""
    kept: list[Sample] = []
    missing = ""
    for repetition, group in itertools.groupby(sorted(windows), key=lambda window: window.repetition):
        parts = list(group)
        try:
            joules = sum(used(series, window) for window in parts)
        except RefusedOutput as error:
            missing = str(error)
            continue
        watts = joules / sum((window.ended_ns - window.began_ns) / 1e9 for window in parts)
        ended_ns = parts[-1].ended_ns
        kept.append(Sample(_POWER.name, watts, str(_POWER.unit), repetition, ended_ns))
        if not any(window.shared for window in parts):
            kept.append(Sample(_ENERGY.name, joules, str(_ENERGY.unit), repetition, ended_ns))
    return kept, missing


def used(series: Series, window: PowerWindow) -> float:
    """Energy in a window, in J; raises RefusedOutput where the readings do not carry it."""
    _, began_ns, ended_ns, _ = window
    pairs = [(a, b) for a, b in itertools.pairwise(series) if b[0] > began_ns and a[0] < ended_ns]
    gap_ns, span_ns = max((b[0] - a[0] for a, b in pairs), default=0), ended_ns - began_ns
    is_around = pairs and pairs[0][0][0] <= began_ns and pairs[-1][1][0] >= ended_ns
    if not is_around or gap_ns >= _GAP * span_ns:
        seen = f"up to {gap_ns / 1e9:.2f} s between readings of the meter, {span_ns / 1e9:.2f} s of work"
        raise RefusedOutput(f"no energy: {seen}: one before, four in and one after this time are needed")
    joules = 0.0
    for (a_ns, a_w), (b_ns, b_w) in pairs:
        begin_ns, end_ns = max(a_ns, began_ns), min(b_ns, ended_ns)
        # The mean of a straight line is its value at the middle.
        part = (begin_ns + end_ns - 2 * a_ns) / 2 / max(b_ns - a_ns, 1)
        joules += (end_ns - begin_ns) / 1e9 * (a_w + part * (b_w - a_w))
    return joules
