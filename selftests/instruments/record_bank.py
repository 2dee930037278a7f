"""Record the bank of real samples from which the simulations of A/B and bisection draw.

One line a boot of a virtual EVM, in the order of measuring: when, how loaded this machine was, how
long the boot took, and an eMMC case on that boot. The bank may be recorded in pieces. With `--from`
the boots of other runs of that board below some folders are taken in, too: they have no eMMC case.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
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
from evmperf.model.records import BootRecord
from evmperf.model.results import Case, Result
from selftests.instruments import command
from selftests.instruments.bisections import HARMLESS
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


def take_in(file: Path, folders: Sequence[Path]) -> int:
    """Put the boots of runs below some folders into their places in a file; returns how many."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    known = {_spans(line) for line in lines}
    count = len(lines)
    for folder in folders:
        for run in folder.rglob("run.json"):
            if spool.read_run(run.parent).board == BOARD:
                new = {_spans(line): line for line in _boots_of(run.parent)}
                lines += [line for spans, line in new.items() if spans not in known]
                known |= new.keys()
    lines.sort(key=lambda line: float(line["time_s"]))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return len(lines) - count


def _spans(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a boot from another: a run may be there in copies."""
    return tuple(line.get(name) for name, *_ in boot_readings.SPANS)


def _boots_of(run: Path) -> Iterator[dict[str, float]]:
    """The boots of a run that nobody made slower; kernel arguments are those of bisections."""
    for record in spool.read_records(run):
        if not isinstance(record, BootRecord) or record.failure:
            continue
        marks = {mark.phase: mark.mono_ns for mark in record.marks}
        spans = {
            name: round((marks[end] - marks[begin]) / 1e9, 4)
            for name, begin, end, _, _ in boot_readings.SPANS
            if {begin, end} <= set(marks)
        }
        if "boot_time" in spans and set(record.kernel_arguments.split()) <= set(HARMLESS):
            ended_s = (record.started_ns / 1e9) + record.duration_s
            yield {"time_s": round(ended_s, 1), **spans}


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
    parser.add_argument("--from", dest="folders", type=Path, nargs="+", metavar="RESULTS")
    options = parser.parse_args(words)
    if options.folders:
        print(f"{take_in(options.file, options.folders)} boots taken into {options.file}")
        return
    print(f"{record(options.file, options.minutes)} boots recorded in {options.file}")


if __name__ == "__main__":
    main()
