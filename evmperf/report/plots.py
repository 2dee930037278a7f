"""Which plots a benchmark's results get."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from evmperf.benchmarks import wording
from evmperf.benchmarks.families.boot import SPANS
from evmperf.benchmarks.tables import latencies
from evmperf.model.figures import Key
from evmperf.model.results import ParamValue, Result
from evmperf.model.units import Unit, size_bytes
from evmperf.pages import plots as drawing

_MOST_POINTS = 2000
_SIZES: Mapping[str, Callable[[ParamValue], int]] = {
    "block_size": lambda value: size_bytes(str(value)),
    "buffer_size": lambda value: size_bytes(str(value)),
    "size_hex": lambda value: int(str(value), 16),
}
"""Parameters that are sizes, and their bytes: what figures are drawn against."""


@dataclass(frozen=True)
class Plot:
    """A caption, and what stands above it."""

    caption: str
    html: Markup


def of_benchmark(
    title: str, results: Sequence[Result], folder: Path, before: Mapping[Key, float]
) -> Iterator[Plot]:
    """All plots that one benchmark's results give, with the figures `before` where there are any."""
    for result in results:
        if result.driver == "boot":
            yield from _boots(title, result, before)
        yield from _trials(result)
    yield from _over_sizes(title, results, before)
    yield from _histograms(title, results, folder)


def _boots(title: str, result: Result, before: Mapping[Key, float]) -> Iterator[Plot]:
    """Every cycle as a bar of its phases; a cycle without figures says that it failed."""
    cycles: dict[int, dict[str, float]] = {}
    for sample in result.samples:
        cycles.setdefault(sample.repetition, {})[sample.metric] = sample.value
    failed = {
        int(number) - 1: str(failure.kind)
        for failure in result.failures
        if (number := failure.step.removeprefix("cycle ")).isdigit()
    }
    bars = []
    for cycle in sorted({*cycles, *failed}):
        phases = cycles.get(cycle)
        if phases is None:
            bars.append(drawing.Bar(str(cycle + 1), [], f"failed ({failed[cycle]})"))
            continue
        widths = [phases.get(name, 0.0) for name, *_ in SPANS[1:]]
        bars.append(drawing.Bar(str(cycle + 1), widths, f"{phases.get('boot_time', 0):.2f} s"))
    level = {name: before.get(Key(result.benchmark, result.case, name), 0.0) for name, *_ in SPANS}
    if bars and level[SPANS[0][0]]:
        widths = [level[name] for name, *_ in SPANS[1:]]
        bars.append(drawing.Bar("before", widths, f"{level[SPANS[0][0]]:.2f} s"))
    if bars:
        caption = (
            f"{title}, {result.case}: phases of every cycle in seconds since power-on; "
            f"the figure is the boot time"
        )
        parts = [label for _, _, _, label, _ in SPANS[1:]]
        yield Plot(caption, drawing.bars(caption, parts, bars, "s"))


def _over_sizes(title: str, results: Sequence[Result], before: Mapping[Key, float]) -> Iterator[Plot]:
    """Figures against the cases' size, a plot for each unit; earlier levels as thin lines."""
    sized = [(size, result) for result in results if (size := _size(result)) is not None]
    if len({size for size, _ in sized}) < 2:
        return
    sized.sort(key=lambda pair: pair[0])
    units: dict[str, dict[str, list[tuple[float, float]]]] = {}
    levels: dict[str, list[tuple[float, float]]] = {}
    for size, result in sized:
        for metric, unit in sorted({(s.metric, s.unit) for s in result.samples}):
            line = units.setdefault(unit, {}).setdefault(metric, [])
            line.append((size, fmean(result.values(metric))))
            if (level := before.get(Key(result.benchmark, result.case, metric))) is not None:
                levels.setdefault(metric, []).append((size, level))
    for unit, metrics in units.items():
        what = "CPU load" if unit == Unit.PERCENT else unit
        caption = f"{title}: {what} against size"
        series = [drawing.Series(wording.metric(name), points) for name, points in metrics.items()]
        series += [
            drawing.Series(f"{wording.metric(name)} before", levels[name], of=number)
            for number, name in enumerate(metrics)
            if name in levels
        ]
        yield Plot(caption, drawing.lines(caption, series, ("bytes", unit), sizes=True))


def _size(result: Result) -> int | None:
    for name, parse in _SIZES.items():
        if name in result.params:
            try:
                return parse(result.params[name])
            except ValueError:
                return None
    return None


def _trials(result: Result) -> Iterator[Plot]:
    """What a search tried, in the order of trying, a plot for each quantity."""
    trials = result.conditions.get("trials", [])[:_MOST_POINTS]
    quantities: dict[str, list[tuple[float, float]]] = {}
    for number, trial in enumerate(trials, 1):
        for name, value in trial.items():
            if isinstance(value, int | float):
                quantities.setdefault(name, []).append((number, value))
    for name, points in quantities.items():
        caption = f"{result.case}: {name} in each trial of the search"
        yield Plot(caption, drawing.lines(caption, [drawing.Series(name, points)], ("trial", name)))


def _histograms(title: str, results: Sequence[Result], folder: Path) -> Iterator[Plot]:
    """Latency histograms of cyclictest; one that cannot be read has its link to the raw file."""
    for _, cpus in latencies.histograms(results, folder):
        series = [drawing.Series(f"CPU {number}", _steps(counts)) for number, counts in enumerate(cpus)]
        caption = f"{title}: how often each latency was seen"
        if drawn := drawing.histogram(caption, series, "latency in microseconds"):
            yield Plot(caption, drawn)


def _steps(histogram: Mapping[int, int]) -> list[tuple[float, float]]:
    steps = sorted((float(took), float(seen)) for took, seen in histogram.items())
    return steps[:: len(steps) // _MOST_POINTS + 1]
