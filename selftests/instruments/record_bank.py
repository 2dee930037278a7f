"""Record the bank of real samples from which the simulations of A/B and bisection draw.

One line a boot of a virtual EVM, in the order of measuring: when, how loaded this machine was, how
long the boot took, and an eMMC case on that boot. The bank may be recorded in pieces.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labgrid import Environment

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import boot as boot_readings
from evmperf.boards.board import load
from evmperf.lab.bench import LabgridBench
from evmperf.measure.runner import Runner
from evmperf.measure.runs import spool
from evmperf.model.errors import EvmperfError
from evmperf.model.results import Case, Result
from selftests.instruments import command
from selftests.instruments.virtuallab import board_file

BOARD = "virtual-evm"
BENCHMARK = "emmc_raw_fio_1g"
CASE = Case("1m", {"block_size": "1m", "size": "16m", "runtime_s": 2, "settle_s": 0})
"""A short form of that case: it is measured after every boot."""


def record(file: Path, minutes: float) -> int:
    """Append boots to a file until the time is up; returns how many."""
    ends = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as scratch, board_file("virtual", Path(scratch)) as board:
        return _record(file, Path(scratch), board, ends)


def _record(file: Path, scratch: Path, board: Path, ends: float) -> int:
    environment = Environment(str(board))
    bench = LabgridBench(environment.get_target(), load(board))
    run = spool.Run(spool.new_run_id("bank"), "bank", "quick")
    runner = Runner(bench, spool.Spool(scratch, run), "quick", ("fio", "mpstat"))
    recorded = 0
    try:
        while time.monotonic() < ends:
            line = _boot(bench, runner)
            with file.open("a", encoding="utf-8") as bank:
                bank.write(json.dumps(line) + "\n")
            recorded += 1
    finally:
        bench.off()
        environment.cleanup()
    return recorded


def _boot(bench: LabgridBench, runner: Runner) -> dict[str, Any]:
    boot = bench.cold_boot("")
    line: dict[str, Any] = {"time_s": round(time.time(), 1), "load": os.getloadavg()[0]}
    if boot.error:
        return line | {"error": str(boot.error)}
    try:
        line |= {r.metric: round(r.value, 4) for r in boot_readings.readings(boot)}
        line |= _samples(runner.measure(catalogue.benchmark(BENCHMARK), CASE))
    except EvmperfError as error:
        line["error"] = str(error)
    return line


def _samples(result: Result) -> dict[str, float]:
    return {f"emmc_{s.metric}": round(s.value, 3) for s in result.samples}


def main(words: Sequence[str] | None = None) -> None:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args(words)
    print(f"{record(options.file, options.minutes)} boots recorded in {options.file}")


if __name__ == "__main__":
    main()
