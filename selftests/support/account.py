"""What a run of the tests says at its end: where the time went, and what a clone cannot test."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

SHARED = "shared/"
"""In the reason of a skip: real texts that are not part of the project lie beside the checkout."""


def check_parameters(item: pytest.Item) -> None:
    """Raise pytest.UsageError for a test over the project's own data, of which there is none.

    pytest skips it in silence.
    """
    for mark in item.iter_markers("skip"):
        reason = str(mark.kwargs.get("reason", ""))
        if reason.startswith("got empty parameter set"):
            raise pytest.UsageError(f"{item.nodeid} has no cases: data of the project is missing")


def of_parts(reporter: pytest.TerminalReporter) -> list[str]:
    """Lines: seconds of setup, call and teardown by folder of the tests and by worker."""
    parts: Counter[str] = Counter()
    workers: Counter[str] = Counter()
    tests: defaultdict[str, set[str]] = defaultdict(set)
    for report in _reports(reporter):
        folders = report.nodeid.partition("::")[0].split("/")
        part = folders[1] if len(folders) > 2 else folders[-1]
        parts[part] += report.duration
        workers[getattr(report, "worker_id", "one process")] += report.duration
        tests[part].add(report.nodeid)
    lines = [f"{s:7.0f} s  {name}, {len(tests[name])} tests" for name, s in parts.most_common()]
    busy = ", ".join(f"{name} {s:.0f} s" for name, s in sorted(workers.items()))
    return [*lines, f"Busy: {busy}"]


def without_shared(reporter: pytest.TerminalReporter) -> str:
    """One line: which tests were skipped for want of texts beside the checkout; empty if none."""
    missed: Counter[str] = Counter()
    for report in reporter.stats.get("skipped", []):
        if isinstance(report.longrepr, tuple) and SHARED in report.longrepr[2]:
            missed[report.nodeid.partition("::")[0].removeprefix("selftests/")] += 1
    if not missed:
        return ""
    named = ", ".join(f"{file} ({count})" for file, count in sorted(missed.items()))
    return f"Skipped for want of ../shared, real texts that a clone does not have: {named}"


def _reports(reporter: pytest.TerminalReporter) -> list[pytest.TestReport]:
    every = (report for reports in reporter.stats.values() for report in reports)
    return [report for report in every if isinstance(report, pytest.TestReport)]
