"""How fast verdicts are, on a generated year of nights with 700 metrics each."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from evmperf.judge.published import releases as gather
from evmperf.judge.published.declared import tables
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.model.results import Direction, Result, Sample, Status
from evmperf.model.run import Run
from selftests.instruments.speed.figures import JSON, Row, Used, met, python, ratio, used

METRICS = 700
CV = 0.02
_YEAR = 365
_DAY_NS = 86_400 * 10**9
UNDER: dict[str, str] = {}
"""All nights are alike."""

Matrix = NDArray[np.float64]


def _keys() -> list[Key]:
    """Metrics that are judged, as many as a full run has, with their tables' own names."""
    found = dict.fromkeys(
        key for entry in gather.published() for key in figures(entry.results()) if judged(key)
    )
    # The guides leave some out that a run has: more rows of a table whose rows are free.
    more = (
        Key("emmc_ext4", str(number), metric)
        for number in range(METRICS)
        for metric in ("write_throughput", "read_throughput")
    )
    return [*found, *more][:METRICS]


def judged(key: Key) -> bool:
    table = tables()[key.benchmark]
    metric = table.metric(key.case, key.metric)
    second_name = key.case in table.aliases
    return metric is not None and metric.better is not Direction.NONE and not second_name


def _normal(generator: np.random.Generator, nights: int) -> Matrix:
    return 100 * (1 + CV * generator.standard_normal((METRICS, nights)))


def speed() -> list[Row]:
    """`evmperf check` of a full run against a year, against json reading the same files."""
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        results = Path(folder) / "results"
        results.mkdir()
        size = _write_year(results) / 1e6
        check = [
            sys.executable,
            "-m",
            "evmperf",
            "check",
            f"night-{_YEAR:03}",
            "--dry-run",
            "--against",
            f"last:{_YEAR}",
            "--results",
            str(results),
        ]
        folders = [*check, "--from", str(results)]
        read = python(JSON, *map(str, sorted(results.glob("*/results.jsonl"))))
        ours = [used(folders, _JUDGED) for _ in range(3)]
        reference = [used(read) for _ in range(3)]
    return [
        ratio(
            f"check against {_YEAR} nights ({size:.0f} MB) vs json, CPU",
            [need.cpu_s for need in ours],
            [need.cpu_s for need in reference],
            3,
        ),
        _memory(ours),
    ]


_JUDGED = (ExitStatus.OK, ExitStatus.FAILED)


def _memory(needs: Sequence[Used]) -> Row:
    peak = max(need.peak_mib for need in needs)
    return Row("  its memory", f"{peak:.0f} MiB", goal="<= 300 MiB", met=met(peak, 300))


def _write_year(results: Path) -> int:
    """A year of full runs, with records as long as real ones; returns their bytes."""
    keys = _keys()
    generator = np.random.default_rng(1)
    values = _normal(generator, _YEAR + 1)
    written = 0
    for night in range(_YEAR + 1):
        run = Run(
            f"night-{night:03}", "board", "full", started_ns=_DAY_NS * (night + 1), release="1", os="Linux"
        )
        folder = results / run.id
        folder.mkdir()
        (folder / "run.json").write_bytes(msgspec.json.encode(run))
        lines = [_line(key, values[row, night], run.started_ns) for row, key in enumerate(keys)]
        written += (folder / "results.jsonl").write_bytes(b"".join(lines))
    return written


def _line(key: Key, value: float, started_ns: int) -> bytes:
    unit = tables()[key.benchmark].metric(key.case, key.metric)
    sample = Sample(key.metric, float(value), str(unit.unit) if unit else "", 0, started_ns + 1)
    result = Result(
        key.benchmark,
        1,
        "driver",
        key.case,
        {"block_size": "4k", "direction": "write"},
        "full",
        Status.MEASURED,
        (sample,),
        tools={"fio": "fio-3.36", "mpstat": "sysstat 12.6"},
        raw=(f"raw/{key.benchmark}/{key.case}/write-0.json",),
        started_ns=started_ns,
        duration_s=60.0,
        tool_s=59.0,
    )
    return spool.line(result)
