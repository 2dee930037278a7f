"""What the variants of figures are worth.

Each row of docs/variants.md is measured on a virtual EVM in evmperf's way and in the others, in
turn; the difference is that of neighbours, with the 95 % confidence interval of its mean (Student's
t).
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.lab.bench import LabgridBench
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_run_id
from evmperf.model.run import Run
from selftests.instruments import command
from selftests.instruments.variants.figures import HEAD, Measured, line
from selftests.instruments.variants.ways import ROWS, Row
from selftests.instruments.virtuallab import board_file

_ROUNDS = 6
_TOOLS = ("aplay", "dd", "fio", "iperf3", "mkfs.ext4", "mpstat")
"""What the rows need on the board."""


def measured(runner: Runner, row: Row, rounds: int, seconds: float = math.inf) -> list[Measured]:
    """The row measured in each way so many times, in turn; every second round goes backwards. After so many
    seconds no round begins.
    """
    found = [Measured(row, way, metric, [], []) for metric in row.figures for way in row.others]
    began = time.monotonic()
    for number in range(rounds):
        if time.monotonic() - began > seconds:
            break
        values = {}
        for way in row.ways[:: -1 if number % 2 else 1]:
            result = runner.measure(way.benchmark, way.case)
            for failure in result.failures:
                print(f"{row.variant}, {way.name}: {failure.message}", file=sys.stderr)
            for metric in row.figures:
                if samples := result.values(metric):
                    values[way.name, metric] = sum(samples) / len(samples)
        for pair in found:
            own, other = ((name, pair.metric) for name in (row.own.name, pair.way.name))
            if own in values and other in values:
                pair.own.append(values[own])
                pair.other.append(values[other])
                print(f"round {number + 1}: {line(pair)}", file=sys.stderr)
    return found


def _on_virtual(names: list[str], rounds: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as temporary, board_file("virtual", Path(temporary)) as file:
        environment = Environment(str(file))
        bench = LabgridBench(environment.get_target("main"), boards.load(file))
        run = Run(id=new_run_id("variants"), board="virtual", profile="quick")
        runner = Runner(bench, Spool(Path(temporary) / "results", run), "quick", _TOOLS)
        try:
            for name in names:
                for pair in measured(runner, ROWS[name](), rounds, seconds):
                    print(line(pair), flush=True)
        finally:
            runner.close()
            bench.off()
            environment.cleanup()


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = command.parser(__spec__.name, __doc__)
    command.add_names(parser, ROWS)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, metavar="N")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no round of a row later")
    options = parser.parse_args(words)
    names = command.named(parser, options.names, ROWS)
    print(HEAD)
    _on_virtual(names, options.rounds, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
