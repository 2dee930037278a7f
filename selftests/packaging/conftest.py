"""Fixtures of what a user has who installs evmperf."""

import fcntl
import os

import pytest

from selftests.support import wheel


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The programs of an environment that has evmperf from its wheel, and what the base of it needs."""
    own = tmp_path_factory.getbasetemp()
    # The workers of a run share one.
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            wheel.install(folder)
            (folder / "ready").touch()
    return folder / "venv" / "bin"
