"""Locks that others read, delete, or fill with garbage."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading

import pytest

from evmperf.commands.cli.main import main
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.locks import Busy
from evmperf.lab.keeping.wanted import Wanted
from evmperf.model.errors import BoardLost, LabError

SAYS = locks.holding("desk", "here/me+r", 1e9)


@contextlib.contextmanager
def taken(name):
    file, left = locks.lock(name, "desk")
    locks.write(file, SAYS)
    try:
        yield left
    finally:
        os.close(file)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_LOCKS", str(tmp_path))
    monkeypatch.delenv("LG_COORDINATOR", raising=False)
    return tmp_path


READER = """
from evmperf.lab.keeping import locks
print("reading", flush=True)
while True:
    locks.held()
"""


def test_who_reads_keeps_nobody_from_a_free_lock():
    with taken("tty"):
        pass  # left by a holder that was killed
    reader = subprocess.Popen([sys.executable, "-c", READER], stdout=subprocess.PIPE)
    try:
        assert reader.stdout.readline() == b"reading\n"
        for _ in range(200):
            with taken("tty") as left:
                assert left == SAYS
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def test_who_has_a_deleted_lock_has_lost_the_board():
    wanted = Wanted("desk", devices=("tty of a deleted lock",))
    with contextlib.closing(Claim.take(wanted, "run-1")) as claim:
        claim.check()
        locks.path(wanted.locks[0]).unlink()
        with pytest.raises(BoardLost, match="the lock of desk is gone"):
            claim.check()
        with contextlib.closing(Claim.take(wanted, "run-2")) as second:
            claim.close()
            second.check()
            assert "run-2" in locks.held()[0]


def test_a_file_that_is_deleted_between_opening_and_locking_is_no_lock(monkeypatch):
    """Somebody else may have locked the file that has its name now."""
    wanted = Wanted("desk", devices=("tty",))
    lock = locks.lock

    def too_late(name, place):
        file = lock(name, place)
        locks.path(name).unlink()
        return file

    monkeypatch.setattr(locks, "lock", too_late)
    with pytest.raises(BoardLost, match="the lock of desk is gone"):
        Claim.take(wanted, "run-1")


GARBAGE = [
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    b"x" * 100_000,
    b"desk is held by \x1b[2J",
    b"desk is held by\nme",
    "desk is held by \u202eem".encode(),
]


@contextlib.contextmanager
def locked(file):
    """A lock as another user may take it."""
    with file.open("r+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_a_lock_stops_nobody(capsys, text):
    file = locks.path("tty")
    file.write_bytes(text)
    with taken("relay"), locked(file):
        assert SAYS in locks.held()
        assert main(["lab", "who"]) == 0
        said = capsys.readouterr().out
        assert SAYS in said
        assert len(said.splitlines()) == len(locks.held())
        assert said.isascii()
        with pytest.raises(Busy, match="other is held by an unknown"):
            locks.lock("tty", "other")
    with taken("tty"):
        pass


def test_links_and_pipes_among_the_locks_are_left_alone(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("x")
    locks.path("link").symlink_to(secret)
    os.mkfifo(locks.path("pipe"))
    locks.path("folder").mkdir()
    found = []
    reading = threading.Thread(target=lambda: found.append(locks.held()), daemon=True)
    reading.start()
    reading.join(10)
    assert found == [[]]
    for name in ("link", "pipe", "folder"):
        with pytest.raises(LabError, match=f"evmperf-{name}.lock cannot be locked: "):
            locks.lock(name, "desk")
    assert secret.read_text() == "x"
