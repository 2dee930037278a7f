"""In a LAVA job: report every measured case, and each of its figures, to LAVA."""

import os
import shutil
import subprocess
from typing import Any

import pytest

from evmperf.model.results import Status
from evmperf.model.stats import summarise
from pytest_evmperf.plugin import RESULT, what_is_measured
from pytest_evmperf.terminal import REPORTER

PROGRAM = "lava-test-case"
_ANSWER_S = 30.0


def in_job() -> bool:
    """Whether this process runs in LAVA's test shell, which sets the variable."""
    return "LAVA_RESULT_DIR" in os.environ and shutil.which(PROGRAM) is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Report a case when it is done; one whose set-up failed counts as failed."""
    outcome = yield
    what = what_is_measured(item)
    if what is None or not in_job() or any(item.iter_markers("skip")):
        return outcome
    # Slow to import, and needed in jobs alone.
    from evmperf.commands.lava.selection import case_name, lava_word  # noqa: PLC0415

    name = case_name(*what)
    result = item.stash.get(RESULT, None)
    measured = result is not None and result.status is Status.MEASURED
    reporter = item.config.pluginmanager.getplugin(REPORTER)
    if result:
        for metric in what[0].metrics_of(what[1]):
            if values := result.values(metric.name):
                mean = f"{summarise(values).mean:.6f}"
                figure = ["--measurement", mean, "--units", metric.unit]
                _report(reporter, f"{name}.{lava_word(metric.name)}", "pass", figure)
    _report(reporter, name, "pass" if measured else "fail", [])
    return outcome


def _report(reporter: Any, name: str, result: str, more: list[str]) -> None:
    """Call LAVA's own program; what it prints is the signal, which must stay whole."""
    done = subprocess.run(
        [PROGRAM, name, "--result", result, *more],
        capture_output=True,
        text=True,
        timeout=_ANSWER_S,
        check=False,
    )
    if reporter:
        reporter.ensure_newline()
        reporter.write(done.stdout)
        reporter.flush()
