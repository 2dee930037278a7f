"""Runs in the formats of others: JUnit, OpenMetrics (openmetrics.io), a row a sample as CSV or Parquet."""

import csv
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evmperf.measure.runs.history import StoredRun
from evmperf.model.figures import figures
from evmperf.model.outlets import plain
from evmperf.model.results import Status
from evmperf.publish.report.verdicts import case_of, labels, suite_of, xml


def write_junit(runs: Sequence[StoredRun], file: Path) -> None:
    """Write a suite a run, a test a case: its figures as properties, what failed as a failure."""
    root = ET.Element("testsuites")
    for entry in runs:
        run, results = entry.run, entry.results()
        failed = sum(result.status is not Status.MEASURED for result in results)
        suite = suite_of(run.id, len(results), failed)
        suite.attrib |= {
            "timestamp": datetime.fromtimestamp(run.started_ns / 1e9, UTC).isoformat()[:19],
            "hostname": plain(run.board),
        }
        root.append(suite)
        for result in results:
            case = case_of(suite, result.benchmark, result.case)
            case.set("time", f"{result.duration_s:.3f}")
            values = figures([result]).values()
            properties = ET.SubElement(case, "properties") if values else case
            for figure in values:
                value = plain(f"{figure.mean!r} {figure.unit}")
                ET.SubElement(properties, "property", name=plain(figure.key.metric), value=value)
            if result.status is not Status.MEASURED:
                failure_node = ET.SubElement(case, "failure", message=plain(", ".join(result.flaws())))
                failure_node.text = plain("\n".join(failure.message for failure in result.failures))
    file.write_text(xml(root), encoding="utf-8")


def write_openmetrics(runs: Sequence[StoredRun], file: Path) -> None:
    """Write a gauge of every figure's mean, stamped with the beginning of its run (seconds)."""
    lines = ["# TYPE evmperf_figure gauge", "# HELP evmperf_figure Mean of a figure in its unit."]
    for entry in sorted(runs, key=lambda one: one.run.started_ns):
        run = entry.run
        of_run = {"lab": run.lab, "board": run.board, "run": run.id}
        for figure in figures(entry.results()).values():
            tags = labels(**of_run, **figure.key._asdict(), unit=figure.unit)
            lines.append(f"evmperf_figure{tags} {figure.mean!r} {run.started_ns / 1e9:.3f}")
    file.write_text("\n".join([*lines, "# EOF", ""]), encoding="utf-8")


COLUMNS = {
    **dict.fromkeys(("lab", "board", "run"), "VARCHAR"),
    "began": "TIMESTAMP",
    **dict.fromkeys(("benchmark", "case", "driver"), "VARCHAR"),
    "profile": "VARCHAR",
    "metric": "VARCHAR",
    "value": "DOUBLE",
    "unit": "VARCHAR",
    "repetition": "INTEGER",
    "time": "TIMESTAMP_NS",
    "error": "DOUBLE",
}
"""Name to DuckDB's type, in their order; times are in UTC."""


def rows(runs: Sequence[StoredRun]) -> Iterator[tuple[object, ...]]:
    """The samples of runs in their order, as COLUMNS; raises what reading the runs raises."""
    for entry in runs:
        run = entry.run
        began = f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S.%f}"
        for result in entry.results():
            where = (run.lab, run.board, run.id, began)
            what = (result.benchmark, result.case, result.driver, result.profile)
            for sample in result.samples:
                seconds, ns = divmod(sample.time_ns, 10**9)
                time = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{ns:09d}"
                error = "" if sample.error is None else repr(sample.error)
                figure = (sample.metric, repr(sample.value), sample.unit, sample.repetition)
                yield (*where, *what, *figure, time, error)


def write_csv(runs: Sequence[StoredRun], file: Path) -> None:
    """Write a head and a line a sample."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows(runs))


def write_parquet(runs: Sequence[StoredRun], file: Path) -> None:
    """Write the same in columns; it needs DuckDB (the extra `parquet`)."""
    import duckdb  # noqa: PLC0415  # an extra

    with tempfile.TemporaryDirectory(prefix="evmperf-parquet-") as folder:
        lines = Path(folder) / "samples.csv"
        write_csv(runs, lines)
        with duckdb.connect() as database:
            read = database.read_csv(str(lines), header=True, columns=COLUMNS)
            read.write_parquet(str(file))


WRITERS = {"parquet": write_parquet, "csv": write_csv, "junit": write_junit, "openmetrics": write_openmetrics}
"""What writes runs into a file, by the format's name."""
