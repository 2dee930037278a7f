"""The energy that a board takes while a tool works: a meter's readings over the windows of a result.

Energy is the integral of the power over a window (trapezoids between readings, which are interpolated at its
ends); mean power is energy by time.
"""

import bisect
import itertools
import re
from collections.abc import Sequence

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import BOOT, Direction, Metric, Result, Sample, ToolWindow
from evmperf.model.units import MEBIBYTE, MEGABYTE, Unit

Series = Sequence[tuple[int, float]]
"""Readings of the board's supply by time: ns since the epoch, and W."""

_LEAST = 4
"""Readings inside a window from which it has an energy."""
_GAP = 0.25
"""The longest time without a reading, as a part of the window."""

_METRICS = {
    name: Metric(name, unit, better, title, 0, 1e9, required=False)
    for name, unit, better, title in (
        ("mean_power", Unit.WATT, Direction.NONE, "Mean power"),
        ("energy", Unit.JOULE, Direction.NONE, "Energy"),
        ("energy_per_boot", Unit.JOULE, Direction.LOWER, "Energy per boot"),
        ("energy_per_iteration", Unit.JOULE, Direction.LOWER, "Energy per iteration"),
        ("energy_per_mb", Unit.JOULE_PER_MEGABYTE, Direction.LOWER, "Energy per MB"),
    )
}
_NAME = re.compile(rf"(?:\w+_)??({'|'.join(_METRICS)})")

_BYTES: dict[str, float] = {
    Unit.KILOBYTE_PER_SECOND: 1e3,
    Unit.MEGABYTE_PER_SECOND: MEGABYTE,
    Unit.KIBIBYTE_PER_SECOND: 1024,
    Unit.MEBIBYTE_PER_SECOND: MEBIBYTE,
    Unit.BIT_PER_SECOND: 1 / 8,
    Unit.MEGABIT_PER_SECOND: 1e6 / 8,
}
"""Bytes a second of one of a unit."""
_ITERATIONS = {
    Unit.ITERATIONS_PER_SECOND,
    Unit.WORKLOADS_PER_SECOND,
    Unit.DHRYSTONES_PER_SECOND,
    Unit.PER_SECOND,
}


def metric(name: str) -> Metric | None:
    """The metric of energy or power of that name, which may begin with that of a rate; None for others."""
    match = _NAME.fullmatch(name)
    return _METRICS[match[1]] if match else None


def per(metrics: Sequence[Metric], measured: Sequence[str]) -> str:
    """The rate that the energy of a step is divided by: the only one that it measured; "" for none."""
    units = {one.name: one.unit for one in metrics if one.better is Direction.HIGHER}
    rates = [name for name in dict.fromkeys(measured) if units.get(name) in {*_BYTES, *_ITERATIONS}]
    return rates[0] if len(rates) == 1 else ""


def samples(result: Result, series: Series) -> tuple[list[Sample], list[str]]:
    """Power and energy of a result's windows, and why some have none."""
    kept: list[Sample] = []
    missing: list[str] = []
    rates = {sample.metric for sample in result.samples} & {window.per for window in result.windows}
    for window in result.windows:
        try:
            watts, joules = used(series, window)
        except RefusedOutput as error:
            missing.append(str(error))
            continue
        prefix = f"{window.per.removesuffix('_throughput')}_" if len(rates) > 1 and window.per else ""
        values = {"mean_power": watts}
        if not window.shared:
            values |= {"energy": joules, **_divided(result, window, watts, joules)}
        kept += (
            Sample(prefix + name, value, str(_METRICS[name].unit), window.repetition, window.ended_ns)
            for name, value in values.items()
        )
    return kept, list(dict.fromkeys(missing))


def _divided(result: Result, window: ToolWindow, watts: float, joules: float) -> dict[str, float]:
    """The energy of a boot, of a megabyte, or of an iteration."""
    if window.per == BOOT:
        return {"energy_per_boot": joules}
    mine = (s for s in result.samples if (s.metric, s.repetition) == (window.per, window.repetition))
    one = next(mine, None)
    if one is None or one.value <= 0:
        return {}
    if one.unit in _BYTES:
        return {"energy_per_mb": watts / (one.value * _BYTES[one.unit] / MEGABYTE)}
    return {"energy_per_iteration": watts / one.value}


def used(series: Series, window: ToolWindow) -> tuple[float, float]:
    """Mean power (W) and energy (J) in a window; raises RefusedOutput where the readings do not carry it."""
    span_ns = window.ended_ns - window.began_ns
    first = bisect.bisect_right(series, window.began_ns, key=lambda reading: reading[0])
    last = bisect.bisect_left(series, window.ended_ns, key=lambda reading: reading[0])
    inside = series[first:last]
    if span_ns <= 0 or len(inside) < _LEAST or not first or last == len(series):
        seen = f"{len(inside)} readings of the meter in a window of {span_ns / 1e9:.2f} s"
        raise RefusedOutput(f"no energy: {seen}, and readings before and after it are needed, too")
    begin = _between(series[first - 1], series[first], window.began_ns)
    end = _between(series[last - 1], series[last], window.ended_ns)
    points = [begin, *inside, end]
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(series[first - 1 : last + 1])]
    if max(gaps) > max(_GAP * span_ns, 1):
        gap = f"{max(gaps) / 1e9:.2f} s between two readings of the meter"
        raise RefusedOutput(f"no energy: {gap} in a window of {span_ns / 1e9:.2f} s")
    joules = sum((b[0] - a[0]) / 1e9 * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    return joules / (span_ns / 1e9), joules


def _between(before: tuple[int, float], after: tuple[int, float], at_ns: int) -> tuple[int, float]:
    """The reading between two."""
    part = (at_ns - before[0]) / max(after[0] - before[0], 1)
    return at_ns, before[1] + part * (after[1] - before[1])


def write(series: Series) -> str:
    """Readings as CSV: seconds since the epoch, and W."""
    return "time_s,watts\n" + "".join(f"{ns // 10**9}.{ns % 10**9:09d},{watts!r}\n" for ns, watts in series)
