"""What causes cost on the virtual EVM.

Each block measures a case without a cause and with each fault of `why_faults`, in random order,
on one boot, or boots with arguments of the kernel and without one of them. The ratio of a block is that of
the figures without and with the cause; its logarithms make the mean and the interval (Student's t). The
result goes to `evmperf.measure.state.answers.FILE` after each block from the fourth.
"""

from __future__ import annotations

import itertools
import math
import random
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from evmperf.benchmarks.families import boot
from evmperf.measure.runs import spool
from evmperf.measure.state import answers
from evmperf.measure.state.answers import Price
from evmperf.model.figures import figures
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


BOOTS = {"no `quiet`": "quiet", "mitigations on": "mitigations=off"}
"""Causes of a longer boot: the kernel's argument that is missing."""
_BOOT = ("boot_time_mmcsd", "default_rootfs")

Side = Callable[[str, str], dict[str, float]]
"""Measures with the cause of this name, "" for none, into a run of that name: figures by metric."""


def measure(side: Side, causes: Mapping[str, Price], blocks: int) -> None:
    """Measure, print and store the prices of causes of one case, by name."""
    logs: dict[tuple[str, str], list[float]] = {}
    case = next(price.benchmark for price in causes.values())
    for block in range(blocks):
        order = random.sample(("", *causes), len(causes) + 1)
        found = {name: side(name, f"{case}-{block}-{number}") for number, name in enumerate(order)}
        for name, metric in itertools.product(causes, found[""]):
            if with_it := found[name].get(metric):  # a refused figure has no part in it
                way = 1 if metric == "boot_time" else -1
                logs.setdefault((name, metric), []).append(way * math.log(with_it / found[""][metric]))
        enough = {key: values for key, values in sorted(logs.items()) if len(values) - 1 in _STUDENT}
        store(_price(causes[name], metric, values) for (name, metric), values in enough.items())
    for (name, metric), values in enough.items():
        print(f"{name}, {metric}: {_price(causes[name], metric, values)}", flush=True)


def of_faults(board: Board, faults: Sequence[Fault], blocks: int) -> None:
    """What faults cost the throughputs of their common case."""
    by_name, case = {fault.name: fault for fault in faults}, faults[0].case

    def side(name: str, run: str) -> dict[str, float]:
        folder = board.with_fault(by_name[name], run) if name else board.measure(run, case)
        found = figures(spool.read_results(folder)).items()
        return {key.metric: figure.mean for key, figure in found if key.metric.endswith("throughput")}

    measure(side, {fault.name: _blank(fault.rules[0], case) for fault in faults}, blocks)


def of_boots(board: Board, names: Collection[str], blocks: int) -> None:
    """What a missing argument of the kernel costs a boot."""

    def side(name: str, _run: str) -> dict[str, float]:
        arguments = " ".join(word for cause, word in BOOTS.items() if cause != name)
        found = boot.readings(board.bench.cold_boot(arguments))
        return {reading.metric: reading.value for reading in found if reading.metric == "boot_time"}

    measure(side, {name: _blank(f"argument -{BOOTS[name]}", _BOOT) for name in names}, blocks)


def _blank(cause: str, case: tuple[str, str]) -> Price:
    return Price(cause, "virtual-evm", *case, "", 1.0, 1.0, 1.0, 0)


def _price(price: Price, metric: str, logs: list[float]) -> Price:
    mean = float(np.mean(logs))
    half = _STUDENT[len(logs) - 1] * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    ratio, low, high = (round(math.exp(log), 3) for log in (mean, mean - half, mean + half))
    return msgspec.structs.replace(price, metric=metric, ratio=ratio, low=low, high=high, blocks=len(logs))


def store(found: Iterable[Price]) -> None:
    """Put prices in the place of earlier ones."""
    kept = {(p.cause, p.board, p.benchmark, p.metric): p for p in (*answers.prices(), *found)}
    ordered = [price for _, price in sorted(kept.items())]
    answers.FILE.write_bytes(msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n")
    answers.prices.cache_clear()


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and store."""
    parser = command.parser(__spec__.name, __doc__)
    names = (*NAMES, *BOOTS)
    command.add_names(parser, names)
    parser.add_argument("--blocks", type=int, default=6, choices=[n + 1 for n in _STUDENT])
    given = parser.parse_args(words)
    chosen = command.named(parser, given.names, names)
    cases: dict[tuple[str, str], list[Fault]] = {}
    for fault in why_faults.FAULTS:
        if fault.name in chosen:
            table, row = fault.case
            case = (table, row and _ROW)
            cases.setdefault(case, []).append(replace(fault, case=case))
    with tempfile.TemporaryDirectory() as folder, why_faults.board(Path(folder)) as board:
        for faults in cases.values():
            of_faults(board, faults, given.blocks)
        if boots := [name for name in BOOTS if name in chosen]:
            of_boots(board, boots, given.blocks)


if __name__ == "__main__":
    main()
