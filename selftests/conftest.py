"""The project's own tests need no board; run them with `pytest selftests`."""

import os
import signal
import sys

import hypothesis
import pytest

from evmperf.model import concealing
from selftests.support import account
from selftests.support import browser as browsers
from selftests.support.fakeboard import FakeBoard, FakeSwitch
from selftests.support.influxd import running
from selftests.support.sshd import Sshd

NEEDS = {"influxd": {"influxd", "own_influxd"}, "browser": {"browser"}}
"""Markers, and the fixtures that bring them."""
SERVERS = ("EVMPERF_HISTORY", "EVMPERF_INFLUX_", "EVMPERF_LAVA_")

# The tests start hundreds of sessions: compiling evmperf anew is 0.8 s of each session's 2.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# nohup and a script's `&` have these ignored, by us and by all that the tests start.
for number, usual in {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

# The same examples on every machine and every day: a red selftest is a change, not a dice roll.
hypothesis.settings.register_profile(
    "selftests", derandomize=True, database=None, deadline=None, max_examples=150
)
hypothesis.settings.load_profile("selftests")


@pytest.fixture(autouse=True)
def _environment_as_it_was():
    """A command that is called in this process may leave Labgrid's name of the user behind, and what it
    learned of secrets. No test meets the history, the database or the LAVA of whoever runs it.
    """
    before, secrets = dict(os.environ), {*concealing._learned}
    for name in before:
        if name.startswith(SERVERS):
            del os.environ[name]
    yield
    concealing._learned.intersection_update(secrets)
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def influxd(tmp_path_factory):
    """An InfluxDB for all tests; each makes a bucket of its own."""
    with running(tmp_path_factory.mktemp("influxd") / "data") as server:
        yield server


@pytest.fixture
def own_influxd(tmp_path):
    """One that a test may break."""
    with running(tmp_path / "influxd") as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    """A module's own: where one runs, asyncio.run does not."""
    with browsers.chromium() as found:
        yield found


@pytest.fixture
def fake():
    """A scripted board, off."""
    board = FakeBoard()
    yield board
    board.close()


@pytest.fixture
def switch(fake):
    """Its power switch."""
    switch = FakeSwitch(fake)
    yield switch
    switch.close()


@pytest.fixture
def sshd(tmp_path):
    """An sshd on loopback that a test may stop: what a lab's machines have in common."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    sshd = Sshd(folder)
    yield sshd
    sshd.stop()


@pytest.hookimpl(optionalhook=True)
def pytest_configure(config):
    """Failures are named at once by the process that has the terminal."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(account.Failures(config))
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        from xdist.workermanage import NodeManager

        # A worker that writes what it reached ends later than xdist waits before it kills it.
        NodeManager.EXIT_TIMEOUT = 300


def pytest_xdist_make_scheduler(config, log):
    from selftests.support.workers import Scheduler

    return Scheduler(config, log) if config.getvalue("dist") == "load" else None


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config, items):
    for item in items:
        for name, fixtures in NEEDS.items():
            if fixtures.intersection(item.fixturenames):
                item.add_marker(name)
        account.check_parameters(item)
        for mark in [*item.iter_markers()]:
            if mark.name.startswith("long_") and mark.name not in config.option.markexpr:
                item.add_marker(pytest.mark.skip(reason=f"too long for CI: give -m {mark.name}"))
    if hasattr(config, "workerinput"):
        from selftests.support.workers import longest_first

        longest_first(items)


def pytest_terminal_summary(terminalreporter, config):
    if config.option.durations is not None:
        terminalreporter.section("seconds by part of the tests")
        terminalreporter.write_line("\n".join(account.of_parts(terminalreporter)))
