"""Which plots a benchmark's results get."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from markupsafe import Markup

from evmperf.benchmarks import wording
from evmperf.benchmarks.families.boot import END, SPANS
from evmperf.benchmarks.tables import cyclictest_stress
from evmperf.model.figures import Key
from evmperf.model.results import ParamValue, Result
from evmperf.model.units import Unit, size_bytes
from evmperf.publish.pages import plots as drawing

_MOST_POINTS = 2000
_REASON = 120
"""Characters of a failure's message in the place of a bar."""
_BEFORE = ("power_to_output", "output_to_uboot", "uboot")
"""Phases before the start of the boot time."""
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


@dataclass(frozen=True)
class BootChart:
    """Every boot of a case as a bar of its `PHASES` in seconds; `longest` is the scale's."""

    caption: str
    bars: list[drawing.Bar]
    longest: float


PHASES = [label for *_, label, _ in SPANS[1:]]


def of_benchmark(
    title: str,
    results: Sequence[Result],
    folder: Path,
    before: Mapping[Key, float],
    *,
    beside: Sequence[Result] = (),
    other: str = "",
) -> Iterator[Plot]:
    """All plots that one benchmark's results give, with the figures `before` where there are any, and the
    boots `beside` of the run `other`.
    """
    for chart in boot_charts(results, beside, other):
        html = drawing.bars(chart.caption, PHASES, chart.bars, chart.longest)
        yield Plot(chart.caption, html)
    for result in results:
        yield from _trials(result)
    yield from _over_sizes(title, results, before)
    yield from _histograms(title, results, folder)


def boot_charts(results: Sequence[Result], beside: Sequence[Result] = (), other: str = "") -> list[BootChart]:
    """The boots of each case, and those `beside` of the same case in the run `other`, on one scale."""
    drawn: list[tuple[Result, str, list[drawing.Bar]]] = []
    for result in results:
        if result.driver == "boot":
            drawn.append((result, "", _boots(result)))
            row = (result.benchmark, result.case)
            drawn += [(r, f" of {other}", _boots(r)) for r in beside if (r.benchmark, r.case) == row]
    longest = max((drawing.length(bars) for *_, bars in drawn), default=0.0)
    return [BootChart(_caption(result, of), bars, longest) for result, of, bars in drawn if bars]


def _caption(result: Result, of: str) -> str:
    what = "phases of every cycle in seconds since power-on; the figure is the boot time"
    ends = [wording.metric(name) for name in _ends(result)[1:]]
    what += f", the strokes are {', '.join(ends)}" if ends else ""
    spread = [words for name in _ends(result) if (words := _spread(result, name))]
    return f"{wording.title(result.benchmark)}, {result.case}{of}: {'. '.join([what, *spread])}"


def _ends(result: Result) -> list[str]:
    """The boot time, and the metrics of ends that the board file names."""
    names = dict.fromkeys(sample.metric for sample in result.samples)
    return [SPANS[0][0], *(name for name in names if name.startswith(END))]


def _spread(result: Result, name: str) -> str:
    """The distribution of a time over the cycles, in a sentence; "" without one."""
    values, error_s = sorted(result.values(name)), result.error(name)
    if not values:
        return ""
    # The smallest of the values that 95 % do not exceed.
    figures = {"min": values[0], "median": median(values), "p95": values[-(len(values) // 20) - 1]}
    words = [f"{word} {value:.2f} s" for word, value in {**figures, "max": values[-1]}.items()]
    error = f", each within {error_s * 1000:.1f} ms" if error_s else ""
    return f"{wording.metric(name).capitalize()} in {len(values)} cycles: {', '.join(words)}{error}"


def _boots(result: Result) -> list[drawing.Bar]:
    """Every cycle as a bar of its phases; a cycle without figures says why it failed."""
    cycles: dict[int, dict[str, float]] = {}
    for sample in result.samples:
        cycles.setdefault(sample.repetition, {})[sample.metric] = sample.value
    failed = {
        int(number) - 1: f"{failure.kind}: {failure.message[:_REASON]}"
        for failure in result.failures
        if (number := failure.step.removeprefix("cycle ")).isdigit()
    }
    whole, *parts = (name for name, *_ in SPANS)

    def bar(name: str, phases: Mapping[str, float]) -> drawing.Bar:
        begin = sum(phases.get(part, 0.0) for part in _BEFORE)
        marks = [
            (f"{end.removeprefix(END)}: {at:.2f} s", begin + at)
            for end, at in phases.items()
            if end.startswith(END)
        ]
        widths, text = [phases.get(part, 0.0) for part in parts], f"{phases.get(whole, 0):.2f} s"
        return drawing.Bar(name, widths, text, marks=marks)

    return [
        bar(str(cycle + 1), cycles[cycle])
        if cycle in cycles
        else drawing.Bar(str(cycle + 1), [], "failed", note=failed[cycle])
        for cycle in sorted({*cycles, *failed})
    ]


def _over_sizes(title: str, results: Sequence[Result], before: Mapping[Key, float]) -> Iterator[Plot]:
    """Figures against the cases' size, a plot for each unit and each group of rows (an algorithm); earlier
    levels as thin lines.
    """
    groups: dict[str, list[tuple[int, Result]]] = {}
    for result in results:
        if (size := _size(result)) is not None:
            of = ", ".join(word for word in result.case.split("|") if word != _size_word(result))
            groups.setdefault(of, []).append((size, result))
    for of, sized in groups.items():
        sized.sort(key=lambda pair: pair[0])
        if sized[0][0] != sized[-1][0]:
            yield from _group(f"{title}, {of}" if of else title, sized, before)


def _group(title: str, sized: Sequence[tuple[int, Result]], before: Mapping[Key, float]) -> Iterator[Plot]:
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


def _size_word(result: Result) -> str:
    """The size in a case's label."""
    return next((str(result.params[name]) for name in _SIZES if name in result.params), "")


def _size(result: Result) -> int | None:
    name = next((name for name in _SIZES if name in result.params), "")
    try:
        return _SIZES[name](result.params[name]) if name else None
    except ValueError:
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
    for cpus in cyclictest_stress.wake_ups(results, folder):
        steps = [sorted((float(took), float(seen)) for took, seen in counts.items()) for counts in cpus]
        shown = [points[:: len(points) // _MOST_POINTS + 1] for points in steps]
        series = [drawing.Series(f"CPU {number}", points) for number, points in enumerate(shown)]
        caption = f"{title}: how often each latency was seen"
        if drawn := drawing.histogram(caption, series, "latency in microseconds"):
            yield Plot(caption, drawn)
