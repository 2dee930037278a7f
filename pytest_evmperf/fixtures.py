"""Fixtures for a lab's own tests: a held board, its shell, its U-Boot, its console, and figures of one's own.

Each asks for its state when a test begins, so that the order of tests does not matter. docs/your-lab.md
has an example of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evmperf.boards.board import Board
from evmperf.boards.console.record import read
from evmperf.commands.app.measuring import MeasuringSession
from evmperf.model import limits
from evmperf.model.results import Result, Sample, Status
from evmperf.model.units import Unit

if TYPE_CHECKING:
    from evmperf.lab.shell import CommandShell
    from evmperf.measure.bench import Shell

Record = Callable[..., Result]


class Console:
    """What the board said on its console since the test began, without what evmperf noted beside it."""

    def __init__(self, log: Path) -> None:
        self._log, self._before = log, sum(1 for _ in read(log))

    def text(self) -> str:
        """It, as far as it has arrived; bytes that are no UTF-8 are replaced."""
        output = (entry.data for entry in islice(read(self._log), self._before, None) if entry.kind == "<")
        return b"".join(output).decode("utf-8", "replace")


@pytest.fixture
def board(measuring: MeasuringSession) -> Board:
    """The board file of the board that this session holds: features and options."""
    return measuring.board


@pytest.fixture
def shell(measuring: MeasuringSession) -> CommandShell:
    """A root shell in Linux: `shell.run(COMMAND)`, `shell.run_check(COMMAND)`; boots if necessary."""
    from evmperf.lab.shell import CommandShell  # noqa: PLC0415  # Labgrid is slow to import

    return CommandShell(measuring.shell())


@pytest.fixture
def uboot(measuring: MeasuringSession) -> Shell:
    """U-Boot's prompt: `uboot.run(command, timeout_s)`; power-cycles the board if necessary."""
    assert measuring.bench is not None
    return measuring.bench.uboot()


@pytest.fixture
def console(measuring: MeasuringSession) -> Console:
    """What the board says on its console during the test: `console.text()`."""
    return Console(measuring.folder / "console.log")


@pytest.fixture
def record(request: pytest.FixtureRequest, measuring: MeasuringSession) -> Record:
    """A function that keeps figures in the run: `record("latency", [12.1, 12.3], Unit.MICROSECOND)`.

    The test's function names the benchmark, `case` its row; `evmperf check` compares them with earlier runs.
    """
    driver = next((mark.args[0] for mark in request.node.iter_markers("lg_feature")), "system")
    began_ns = time.time_ns()

    def keep(metric: str, values: Sequence[float], unit: Unit, case: str = "all") -> Result:
        now_ns = time.time_ns()
        samples = tuple(
            Sample(metric, float(value), unit, number, now_ns + number) for number, value in enumerate(values)
        )
        if not samples or not all(abs(sample.value) <= limits.REAL for sample in samples):
            raise ValueError(f"{metric}: {values!r}: give at least one number, and finite ones only")
        result = Result(
            benchmark=request.node.originalname.removeprefix("test_"),
            version=1,
            driver=driver,
            case=case,
            params={},
            profile=measuring.run.profile,
            status=Status.MEASURED,
            samples=samples,
            started_ns=began_ns,
            duration_s=(now_ns - began_ns) / 1e9,
        )
        measuring.keep(result)
        return result

    return keep
