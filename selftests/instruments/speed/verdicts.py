"""How fast verdicts are, on a generated year of nights with at least 700 metrics each, as a full run has."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.model.exits import ExitStatus
from selftests.instruments.speed.figures import JSON, Row, Used, met, python, ratio, used
from selftests.support import years

_METRICS = 700
_YEAR = 365
_JUDGED = (ExitStatus.OK, ExitStatus.FAILED, ExitStatus.UNDECIDED)


def speed() -> list[Row]:
    """`evmperf check` of a full run against a year, against json reading the same files."""
    tables: list[str] = []
    for name in catalogue.benchmarks():
        if sum(len(metrics) for *_, metrics in years.figures(tables)) < _METRICS:
            tables.append(name)
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        results = Path(folder) / "results"
        size = years.write(results, ["board"], _YEAR + 1, tables, samples=1, changed=0.0) / 1e6
        night = max(path.name for path in results.iterdir())
        check = [sys.executable, "-m", "evmperf", "check", night, "--dry-run", "--against", f"last:{_YEAR}"]
        check += ["--results", str(results), "--from", str(results)]
        read = python(JSON, *map(str, sorted(results.glob("*/results.jsonl"))))
        ours = [used(check, _JUDGED) for _ in range(3)]
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


def _memory(needs: Sequence[Used]) -> Row:
    peak = max(need.peak_mib for need in needs)
    return Row("  its memory", f"{peak:.0f} MiB", goal="<= 300 MiB", met=met(peak, 300))
