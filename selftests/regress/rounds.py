"""Sessions that measure nothing: ordinary runs on disk with figures from a function."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from evmperf.judge.rounds import Session, Sessions
from evmperf.measure.runs.spool import Spool
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.replies import WantedSession
from evmperf.model.results import Sample
from evmperf.model.run import Run
from selftests.support.spools import a_case

BENCHMARK = "emmc_ext4"
UNITS = {"write_throughput": "MB/s", "read_throughput": "MB/s", "write_cpu_load": "%"}
Figures = Mapping[str, Mapping[str, float]]
"""Values by case and metric."""


class FakeSessions(Sessions):
    """`figures` says what a side's next run measures; exceptions in `failures` are raised, and exit
    statuses there returned without a run.
    """

    def __init__(self, folder: Path, figures: Callable[[WantedSession], Figures]) -> None:
        super().__init__(folder)
        self.figures = figures
        self.failures: list[BaseException | ExitStatus | None] = []
        self.asked: list[WantedSession] = []

    def measure(self, wanted: WantedSession) -> Session:
        self.asked.append(wanted)
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, BaseException):
            raise failure
        if failure is not None:
            return Session("", failure, 60.0, "The lab is broken: the power switch does not answer.")
        name = f"run-{len(list(self.folder.glob('*/run.json'))):03}"
        spool = Spool(self.folder, Run(name, "evm", "quick", facts=Facts(variation=list(wanted.vary))))
        for case, metrics in self.figures(wanted).items():
            if f"{BENCHMARK}/{case}" not in wanted.leave_out:
                samples = tuple(Sample(name, value, UNITS[name], 0, 1) for name, value in metrics.items())
                spool.append(a_case(benchmark=BENCHMARK, case=case, profile="quick", samples=samples))
        return Session(name, ExitStatus.OK, 60.0)


def noisy(changes: Mapping[str, float], seed: int = 1) -> Callable[[WantedSession], Figures]:
    """Figures with 1 % of noise; side B's throughput by case times 1 + change."""
    source = random.Random(seed)

    def figures(wanted: WantedSession) -> Figures:
        found = {}
        for case, change in changes.items():
            factor = 1 + change if wanted.vary else 1.0
            found[case] = {
                "write_throughput": 50 * factor * source.gauss(1, 0.01),
                "write_cpu_load": 30 + source.gauss(0, 5),
            }
        return found

    return figures
