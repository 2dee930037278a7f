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
from evmperf.lab.keeping.locks import Busy, Locks
from evmperf.lab.keeping.wanted import HoldRecord, Wanted, refusal
from evmperf.model.errors import BoardLost, LabError

HOLDER = HoldRecord("here/me+r", "desk", since=1.0)


def taken(names):
    locks = Locks(names)
    locks.describe(HOLDER)
    return locks


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_LOCKS", str(tmp_path))
    return tmp_path


def lock_file(folder):
    (file,) = folder.glob("evmperf-*.lock")
    return file


READER = """
from evmperf.lab.keeping import locks
print("reading", flush=True)
while True:
    locks.held()
"""


def test_who_reads_keeps_nobody_from_a_free_lock(folder):
    taken(["tty"]).close()
    lock_file(folder).write_text("left by a holder that was killed")
    reader = subprocess.Popen([sys.executable, "-c", READER], stdout=subprocess.PIPE)
    try:
        assert reader.stdout.readline() == b"reading\n"
        for _ in range(5000):
            taken(["tty"]).close()
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def test_a_file_that_is_deleted_between_opening_and_locking_is_no_lock(folder, monkeypatch):
    first = taken(["tty"])
    opened = locks._open

    def too_late(path):
        monkeypatch.setattr(locks, "_open", opened)
        file = opened(path)
        first.close()
        path.unlink()
        return file

    monkeypatch.setattr(locks, "_open", too_late)
    mine = taken(["tty"])
    with pytest.raises(Busy):
        taken(["tty"])
    mine.close()


def test_who_has_a_deleted_lock_has_lost_the_board(lab):
    wanted = Wanted("desk", devices=("tty of a deleted lock",))
    claim = Claim.take(wanted, "run-1")
    try:
        claim.check()
        locks._path(wanted.devices[0]).unlink()
        with pytest.raises(BoardLost, match="the lock of desk was deleted"):
            claim.check()
        Claim.take(wanted, "run-2").release()
    finally:
        claim.release()


GARBAGE = [
    b"{}",
    b"[]",
    b"null",
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    b"[" * 60_000,
    b'"' + b"x" * 100_000,
    b'{"place": "desk"}',
    b'{"holder": "h/u", "place": 1, "coordinator": [], "since": "x"}',
    b'{"holder": "h/u", "place": "a", "since": 1e300}',
    b'{"holder": "h/u", "place": "a\\u001b[2J"}',
]


@contextlib.contextmanager
def locked(file):
    """A lock as another user may take it."""
    handle = os.open(file, os.O_RDWR)
    fcntl.fcntl(handle, fcntl.F_OFD_SETLK, locks._LOCK)
    try:
        yield
    finally:
        os.close(handle)


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_in_a_lock_stops_nobody(folder, capsys, monkeypatch, text):
    monkeypatch.delenv("LG_COORDINATOR", raising=False)
    good = taken(["relay"])
    file = folder / f"evmperf-{'0' * 16}.lock"
    file.write_bytes(text)
    with locked(file):
        assert locks.held() == [HOLDER]
        assert main(["lab", "who"]) == 0
    assert "desk" in capsys.readouterr().out
    good.close()
    taken(["tty"]).close()
    mine = locks._path("tty")
    mine.write_bytes(text)
    with locked(mine), pytest.raises(Busy) as busy:
        taken(["tty"])
    assert "held by an unknown user" in refusal("desk", busy.value.holder)


def test_links_and_pipes_among_the_locks_are_left_alone(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("x")
    os.mkfifo(folder / "evmperf-pipe.lock")
    locks._path("tty").symlink_to(secret)
    found = []
    reading = threading.Thread(target=lambda: found.append(locks.held()), daemon=True)
    reading.start()
    reading.join(10)
    assert found == [[]]
    with pytest.raises(LabError, match="cannot be opened"):
        taken(["tty"])
    assert secret.read_text() == "x"
