"""A dashboard for each driver of the catalogue: every metric of every benchmark over time."""

from collections.abc import Iterator, Sequence

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards.vocabulary import FEATURES
from evmperf.grafana import parts, query
from evmperf.model.results import Direction, Metric
from evmperf.runs.history import SAMPLE

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
    of_driver = f"driver == {driver!r}"
    chosen = (query.OF_BOARD, of_driver, query.MEASURED)
    builder = (
        parts.Builder(
            f"evmperf-driver-{driver}",
            f"Driver {driver}",
            f"One board that {FEATURES[driver]}: mean, lowest and highest value of each run, "
            "the latest published figure, and where the release changed.",
        )
        .choice("board", query.values("board", of_driver))
        .kinds()
        .choice("profile", query.values("profile", *chosen))
        .choice("release", query.releases(query.OF_BOARD, query.MEASURED), multi=True)
        .choice("case", query.values("case", *chosen), multi=True)
        .marks()
    )
    for number, benchmark in enumerate(benchmarks):
        panels = [_panel(benchmark, *found) for found in metrics(benchmark)]
        builder.row(benchmark.title, *panels, collapsed=number > 0)
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


def _panel(benchmark: Benchmark, metric: Metric, cases: Sequence[str]) -> parts.Panel:
    # Rows with the same name may differ in unit.
    what = (
        query.OF_BOARD,
        f"benchmark == {benchmark.name!r}",
        f"metric == {metric.name!r}",
        f"unit == {str(metric.unit)!r}",
        query.OF_CASES,
    )
    of_runs = query.points(
        SAMPLE, *what, query.MEASURED, query.OF_KINDS, query.OF_PROFILE, query.OF_RELEASES
    ).per_run()
    # Mean, low and high of every case, as lines `CASE mean` ..., with the run's addresses; and the latest
    # published figure of every case, as a level line.
    lines = (
        {"time": "time", "run": "run", "series": f"case + ' {name}'", "Value": name}
        for name in ("mean", "low", "high")
    )
    ends = ({"time": end, "series": "case + ' published'", "Value": "value"} for end in ("begin()", "end()"))
    published = query.points(SAMPLE, *what, query.PUBLISHED, always=True).last("case", order="release")
    panel = parts.over_time(
        f"{benchmark.title}: {metric.title}",
        f"{_WAYS[metric.better]} Mean of each run, between its lowest and highest sample; dashed: "
        "the latest published figure. Click a point for the run's report and CI job.",
        of_runs.rows(*lines).wide("series", "run").addressed(query.OF_BOARD, query.MEASURED),
        published.rows(*ends).wide("series"),
        unit=parts.unit_id(metric.unit),
    )
    return parts.banded(parts.linked(panel), cases)
