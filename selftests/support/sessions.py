"""A pytest that measures, in a process of its own."""

import sys
import time

import pytest

from evmperf.measure.hostload import slowness
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

    def __init__(self, env_file, results, select, options=(), environment=None):
        self.results = results
        self.log = results.with_suffix(f".{time.monotonic_ns()}.log")
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--lg-env", env_file]
        words += ["-k", select] if select else []
        self.process = programs.start(
            self.log, *words, f"--results={results}", *options, environment=environment, PYTHONUNBUFFERED="1"
        )

    def wait(self):
        return self.process.wait(DEADLINE_S * slowness())

    @property
    def folder(self):
        return next(self.results.glob("*/run.json")).parent

    def measured(self):
        runs = list(self.results.glob("*/run.json"))
        return cases_of(runs[0].parent) if runs else []

    @property
    def said(self):
        return self.log.read_text()


def whole(env_file, folder, select, *options, deadline_s=900):
    """A session that measured all it was to; one with refused outputs, and no failure, is made anew."""
    for number in range(TRIES):
        session = Pytest(env_file, folder / f"results{number}", select, options)
        if session.process.wait(deadline_s * slowness()) == 0:
            return session
        if any(result.status == "failed" for result in session.measured()):
            break
    pytest.fail(session.said)
