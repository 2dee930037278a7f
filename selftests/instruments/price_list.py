"""What causes cost on the virtual EVM.

Each block measures a case with and without a fault of `why_faults`, in random order, on
one boot, or boots with and without an argument of the kernel. The ratio of a block is that of the figures
without and with it; its logarithms make the mean and the interval (Student's t). The result goes to
`evmperf.state.prices.FILE`.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from evmperf.benchmarks.families import boot
from evmperf.model.figures import figures
from evmperf.runs import spool
from evmperf.state import prices
from evmperf.state.prices import Price
from selftests.instruments import command, why_faults
from selftests.instruments.why_faults import Board, Fault

_ROW = "1m"
"""The row of a storage table that is measured: its fill is the shortest."""
NAMES = (
    "a CPU hog beside",
    "another I/O scheduler",
    "read-ahead off",
    "small requests",
    "interrupt pacing off",
    "offloads off",
    "small socket buffers",
)
_STUDENT = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""97.5 % quantiles of Student's t, by degrees of freedom."""


BOOTS = {
    "no `quiet`": ("argument -quiet", "", "quiet"),
    "mitigations on": ("argument -mitigations=off", "", "mitigations=off"),
}
"""Causes of a longer boot: rule, and the kernel's arguments with and without the cause."""
_BOOT = ("boot_time_mmcsd", "default_rootfs")


def measure(side: Callable[[bool, str], dict[str, float]], price: Price, blocks: int) -> list[Price]:
    """The prices of a cause, one a metric; `side` measures with it or without, and names the run."""
    logs: dict[str, list[float]] = {}
    for block in range(blocks):
        sides = {
            faulty: side(faulty, f"price-{price.cause.replace(' ', '')}-{block}-{faulty:d}")
            for faulty in random.sample((True, False), 2)
        }
        for metric in set(sides[True]) & set(sides[False]):
            way = 1 if metric == "boot_time" else -1
            logs.setdefault(metric, []).append(way * math.log(sides[True][metric] / sides[False][metric]))
    return [_price(price, metric, values) for metric, values in logs.items() if len(values) - 1 in _STUDENT]


def of_fault(board: Board, fault: Fault, blocks: int) -> list[Price]:
    """What a fault costs the throughputs of its case."""

    def side(faulty: bool, name: str) -> dict[str, float]:
        folder = board.with_fault(fault, name) if faulty else board.measure(name, fault.case)
        found = figures(spool.read_results(folder)).items()
        return {key.metric: figure.mean for key, figure in found if key.metric.endswith("throughput")}

    return measure(side, _blank(fault.rules[0], fault.case), blocks)


def of_boots(board: Board, cause: tuple[str, str, str], blocks: int) -> list[Price]:
    """What the kernel's arguments cost a boot."""

    def side(faulty: bool, name: str) -> dict[str, float]:
        found = boot.readings(board.bench.cold_boot(cause[1 if faulty else 2]))
        return {reading.metric: reading.value for reading in found if reading.metric == "boot_time"}

    return measure(side, _blank(cause[0], _BOOT), blocks)


def _blank(cause: str, case: tuple[str, str]) -> Price:
    return Price(cause, "virtual-evm", *case, "", 1.0, 1.0, 1.0, 0)


def _price(price: Price, metric: str, logs: list[float]) -> Price:
    mean = float(np.mean(logs))
    half = _STUDENT[len(logs) - 1] * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    ratio, low, high = (round(math.exp(log), 3) for log in (mean, mean - half, mean + half))
    return msgspec.structs.replace(price, metric=metric, ratio=ratio, low=low, high=high, blocks=len(logs))


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and store."""
    parser = command.parser(__spec__.name, __doc__)
    names = (*NAMES, *BOOTS)
    command.add_names(parser, names)
    parser.add_argument("--blocks", type=int, default=6, choices=[n + 1 for n in _STUDENT])
    given = parser.parse_args(words)
    chosen = command.named(parser, given.names, names)
    kept = {(p.cause, p.board, p.benchmark, p.metric): p for p in prices.known()}
    faults = {fault.name: fault for fault in why_faults.FAULTS}
    with tempfile.TemporaryDirectory() as folder, why_faults.board(Path(folder)) as board:
        for name in chosen:
            if name in BOOTS:
                found = of_boots(board, BOOTS[name], given.blocks)
            else:
                table, row = faults[name].case
                found = of_fault(board, replace(faults[name], case=(table, row and _ROW)), given.blocks)
            for price in found:
                print(f"{name}, {price.metric}: {price}", flush=True)
                kept[price.cause, price.board, price.benchmark, price.metric] = price
            ordered = sorted(kept.values(), key=lambda p: (p.cause, p.board, p.benchmark, p.metric))
            prices.FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")


if __name__ == "__main__":
    main()
