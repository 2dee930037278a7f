"""What a run of the tests says: failures at once, tests without cases, and where the time went."""

from collections import Counter, defaultdict

import pytest

SHARED = "shared/"
"""In the reason of a skip by `seeds.needs`."""


def check_parameters(item):
    """Raise pytest.UsageError for a test over data of the project, of which there is none.

    Pytest skips it in silence.
    """
    reasons = [str(mark.kwargs.get("reason", "")) for mark in item.iter_markers()]
    empty = any(reason.startswith("got empty parameter set") for reason in reasons)
    if empty and not any(SHARED in reason for reason in reasons):
        raise pytest.UsageError(f"{item.nodeid} has no cases: data of the project is missing")


def of_parts(reporter):
    """Lines: seconds of setup, call and teardown by folder of the tests and by worker."""
    parts = Counter()
    workers = Counter()
    tests = defaultdict(set)
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                part = _part(report.nodeid)
                parts[part] += report.duration
                workers[getattr(report, "worker_id", "one process")] += report.duration
                tests[part].add(report.nodeid)
    lines = [f"{s:7.0f} s  {name}, {len(tests[name])} tests" for name, s in parts.most_common()]
    busy = ", ".join(f"{name} {s:.0f} s" for name, s in sorted(workers.items()))
    return [*lines, f"Busy: {busy}"]


def _part(nodeid):
    """The folder of a test, or its file where it is in none."""
    folders = nodeid.partition("::")[0].split("/")
    return folders[1] if len(folders) > 2 else folders[-1]


class Failures:
    """Names each failure when it comes, not after half an hour: CI keeps the end of a log only in part."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        """Write a line for a test that failed."""
        if report.failed:
            terminal = self.config.pluginmanager.get_plugin("terminalreporter")
            terminal.ensure_newline()
            terminal.write_line(f"failed in {report.when}: {report.nodeid}")
