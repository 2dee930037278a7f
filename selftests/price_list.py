"""`python -m selftests.price_list [--blocks N] [NAME...]`: what causes cost on the virtual EVM.

Each block measures a case with and without a fault of `selftests.why_faults`, in random order, on
one boot. The ratio of a block is that of the figures without and with it; its logarithms make the
mean and the interval (Student's t). The result goes to `evmperf.state.prices.FILE`.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from evmperf.model.figures import figures
from evmperf.runs import spool
from evmperf.state import prices
from evmperf.state.prices import Price
from selftests import why_faults
from selftests.why_faults import Board, Fault

_ROW = "1m"
"""The row of a storage table that is measured: its fill is the shortest."""
NAMES = (
    "a CPU hog beside",
    "another I/O scheduler",
    "read-ahead off",
    "small requests",
    "interrupt pacing off",
)
_STUDENT = {3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""97.5 % quantiles of Student's t, by degrees of freedom."""


def measure(board: Board, fault: Fault, blocks: int) -> list[Price]:
    """The prices of a fault, one a throughput of its case."""
    logs: dict[str, list[float]] = {}
    for block in range(blocks):
        sides: dict[bool, dict[str, float]] = {}
        for faulty in random.sample((True, False), 2):
            name = f"price-{fault.rules[0]}-{block}-{faulty:d}"
            folder = board.with_fault(fault, name) if faulty else board.measure(name, fault.case)
            found = figures(spool.read_results(folder)).items()
            sides[faulty] = {key.metric: figure.mean for key, figure in found}
        for metric in sides[True]:
            if metric.endswith("throughput") and metric in sides[False]:
                logs.setdefault(metric, []).append(math.log(sides[False][metric] / sides[True][metric]))
    return [_price(fault, metric, values) for metric, values in logs.items() if len(values) - 1 in _STUDENT]


def _price(fault: Fault, metric: str, logs: list[float]) -> Price:
    mean = float(np.mean(logs))
    half = _STUDENT[len(logs) - 1] * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    benchmark, case = fault.case
    return Price(
        cause=fault.rules[0],
        board="virtual-evm",
        benchmark=benchmark,
        case=case,
        metric=metric,
        ratio=round(math.exp(mean), 3),
        low=round(math.exp(mean - half), 3),
        high=round(math.exp(mean + half), 3),
        blocks=len(logs),
    )


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--blocks", type=int, default=6, choices=[n + 1 for n in _STUDENT])
    given = parser.parse_args()
    kept = {(p.cause, p.board, p.benchmark, p.metric): p for p in prices.known()}
    with tempfile.TemporaryDirectory() as folder, why_faults.board(Path(folder)) as board:
        for fault in (fault for fault in why_faults.FAULTS if fault.name in given.names):
            table, row = fault.case
            for price in measure(board, replace(fault, case=(table, row and _ROW)), given.blocks):
                print(f"{fault.name}, {price.metric}: {price}", flush=True)
                kept[price.cause, price.board, price.benchmark, price.metric] = price
            ordered = sorted(kept.values(), key=lambda p: (p.cause, p.board, p.benchmark, p.metric))
            prices.FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")


if __name__ == "__main__":
    main()
