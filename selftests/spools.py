"""Runs to test sinks with: a recorded one of the virtual EVM, and made-up ones of any shape."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from evmperf.errors import Kind
from evmperf.model import Failure, Result, Sample, Status
from evmperf.spool import Run, Spool

RECORDED = next((Path(__file__).parent / "data/spool").iterdir())
"""Quick run of boot time and eMMC on the virtual EVM, 27 cases, without its raw files."""

START_NS = 1_790_000_000_000_000_000


def recorded(results: Path) -> Path:
    """A copy of the recorded run below `results`."""
    return shutil.copytree(RECORDED, results / RECORDED.name)


def a_run(number: int = 0, **changes: object) -> Run:
    """A run that has ended, a day after the one before it."""
    start = START_NS + number * 86_400_000_000_000
    values: dict[str, object] = {
        "id": f"made-up-{number:04}", "board": "made-up", "profile": "quick", "lab": "desk-1",
        "release": "11.00", "os": "Linux", "started_ns": start, "ended_ns": start + 10**12,
        "outcome": "All measured.",
    } | changes  # fmt: skip
    return Run(**values)  # type: ignore[arg-type]


def a_result(run: Run, number: int = 0, values: Sequence[float] = (1.5, 2.5), **changes) -> Result:
    """A case of that run, its samples a second apart."""
    begin = run.started_ns + number * 1_000_000_000
    fields = {
        "benchmark": "emmc_ext4", "version": 1, "driver": "emmc", "case": f"case {number}",
        "params": {"size": 4096}, "profile": run.profile, "status": Status.MEASURED,
        "samples": tuple(
            Sample("write_throughput", value, "MB/s", repetition, begin + repetition)
            for repetition, value in enumerate(values)
        ),
        "tools": {"dd": "9.7"}, "started_ns": begin, "duration_s": 2.0, "tool_s": 1.0,
    } | changes  # fmt: skip
    return Result(**fields)


def a_refusal(run: Run, number: int = 0) -> Result:
    """A case whose output was refused."""
    failure = Failure(Kind.TOOL, "no throughput in this", "write", refused=True)
    return a_result(run, number, (), status=Status.REFUSED, failures=(failure, failure))


def write(results: Path, run: Run, cases: Sequence[Result]) -> Path:
    """Put a run on the disk, as if its session had ended."""
    spool = Spool(results, run)
    for case in cases:
        spool.append_result(case)
    return spool.folder
