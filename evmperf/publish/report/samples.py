"""Every sample of some runs as a row: CSV, and Parquet."""

import csv
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from evmperf.measure.runs.history import StoredRun

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


WRITERS = {"parquet": write_parquet, "csv": write_csv}
