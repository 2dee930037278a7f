"""A dashboard for each driver of the catalogue: every metric of every benchmark over time."""

from collections.abc import Iterator, Sequence

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards.vocabulary import FEATURES
from evmperf.grafana import flux, parts
from evmperf.model.results import Direction, Metric
from evmperf.runs.measurements import SAMPLE

_WAYS = {
    Direction.HIGHER: "Higher is better.",
    Direction.LOWER: "Lower is better.",
    Direction.NONE: "Neither direction is better.",
}


def dashboards() -> Iterator[parts.Builder]:
    """One builder for each driver with benchmarks."""
    by_driver: dict[str, list[Benchmark]] = {}
    for benchmark in catalogue.benchmarks().values():
        by_driver.setdefault(benchmark.driver, []).append(benchmark)
    for driver in sorted(by_driver):
        yield _dashboard(driver, by_driver[driver])


def _dashboard(driver: str, benchmarks: Sequence[Benchmark]) -> parts.Builder:
    of_driver = f"r.driver == {flux.text(driver)}"
    chosen = ('r.board == "${board}"', of_driver, flux.MEASURED)
    builder = (
        parts.Builder(
            f"evmperf-driver-{driver}",
            f"Driver {driver}",
            f"One board that {FEATURES[driver]}: mean, lowest and highest value of each run, "
            "the latest published figure, and where the release changed.",
        )
        .choice("board", flux.tag_values("board", of_driver))
        .kinds()
        .choice("profile", flux.tag_values("profile", *chosen))
        .choice("release", flux.releases(flux.OF_BOARD, flux.MEASURED), multi=True)
        .choice("case", flux.tag_values("case", *chosen), multi=True)
        .marks()
    )
    for number, benchmark in enumerate(benchmarks):
        panels = [_panel(benchmark, *found) for found in metrics(benchmark)]
        builder.row(benchmark.title, panels, collapsed=number > 0)
    return builder


def metrics(benchmark: Benchmark) -> list[tuple[Metric, list[str]]]:
    """Each metric in each unit, with its cases in all profiles."""
    found: dict[tuple[str, str], tuple[Metric, list[str]]] = {}
    for profile in benchmark.profiles:
        for case in benchmark.cases(profile):
            for metric in benchmark.metrics_of(case):
                cases = found.setdefault((metric.name, metric.unit), (metric, []))[1]
                if case.label not in cases:
                    cases.append(case.label)
    return list(found.values())


def _panel(benchmark: Benchmark, metric: Metric, cases: Sequence[str]) -> object:
    what = (
        flux.OF_BOARD,
        f"r.benchmark == {flux.text(benchmark.name)}",
        f"r.metric == {flux.text(metric.name)}",
        flux.OF_CASES,
    )
    # Rows with the same name may differ in unit.
    unit = f"r.unit == {flux.text(str(metric.unit))}"
    chosen = (*what, flux.MEASURED, flux.OF_KINDS, flux.OF_PROFILE)
    measured = flux.points(SAMPLE, *chosen, fields=(unit, flux.OF_RELEASES))
    published = flux.points(SAMPLE, *what, flux.PUBLISHED, always=True, fields=(unit,))
    panel = parts.over_time(
        f"{benchmark.title}: {metric.title}",
        f"{_WAYS[metric.better]} Mean of each run, between its lowest and highest sample; dashed: "
        "the latest published figure. Click a point for the run's report and CI job.",
        flux.bands(measured, flux.OF_BOARD, flux.MEASURED),
        flux.baseline(published),
        unit=parts.unit_id(metric.unit),
    )
    return parts.banded(parts.linked(panel), cases)
