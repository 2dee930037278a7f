"""A pytest that measures, in a process of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from evmperf.measure.hostload import slowness
from evmperf.measure.runs import spool
from selftests.support import programs
from selftests.support.spools import cases_of

DEADLINE_S = 240
"""On an idle host; see `hostload.slowness`."""
TRIES = 3
"""Sessions: beside other tests the host may take most of the second for which a quick one measures, and what
the tool then prints is refused.
"""


class Pytest:
    """Started at once; `select` is its -k, "" for everything, `options` follow. Its output goes to
    `log`.
    """

    def __init__(
        self,
        env_file: Path,
        results: Path,
        select: str,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.results = results
        self.log = results.with_suffix(f".{time.monotonic_ns()}.log")
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--lg-env", env_file]
        words += ["-k", select] if select else []
        self.process = programs.start(
            self.log, *words, f"--results={results}", *options, environment=environment, PYTHONUNBUFFERED="1"
        )

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S * slowness())

    @property
    def folder(self) -> Path:
        return next(self.results.glob("*/run.json")).parent

    def measured(self) -> list[spool.Result]:
        runs = list(self.results.glob("*/run.json"))
        return cases_of(runs[0].parent) if runs else []

    @property
    def said(self) -> str:
        return self.log.read_text()


def whole(env_file: Path, folder: Path, select: str, *options: str, deadline_s: float = 900) -> Pytest:
    """A session that measured all it was to; one with refused outputs, and no failure, is made anew."""
    for number in range(TRIES):
        session = Pytest(env_file, folder / f"results{number}", select, options)
        if session.process.wait(deadline_s * slowness()) == 0:
            return session
        if any(result.status == "failed" for result in session.measured()):
            break
    pytest.fail(session.said)
