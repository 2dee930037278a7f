"""Torn files: what a crash, a full disk or another process leaves costs no more than itself."""

import fcntl
import os
import resource
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.measure.runs import spool
from evmperf.measure.runs.spool import RECORDS, Spool, append_records, leave_out, line, read_records
from evmperf.model.errors import LabError
from evmperf.model.records import BootRecord
from evmperf.model.run import Run


def a_boot(goal):
    return BootRecord(goal=goal, started_ns=1, duration_s=2.5, marks=())


def goals(folder):
    return [record.goal for record in read_records(folder)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Spool(tmp_path_factory.mktemp("spool"), Run("r", "b", "quick")).folder


@given(st.data())
def test_appending_to_a_torn_line_destroys_nothing(folder, data):
    first, torn = line(a_boot("first")), line(a_boot("torn"))
    cut = data.draw(st.integers(0, len(torn) - 1))
    (folder / RECORDS).write_bytes(first + torn[:cut])
    append_records(folder, [a_boot("last")])
    # Nothing but the line's end was missing: then it is whole.
    whole = ["torn"] if cut == len(torn) - 1 else []
    assert goals(folder) == ["first", *whole, "last"]


def test_a_file_without_any_end_of_line_is_begun_anew(folder):
    (folder / RECORDS).write_bytes(b"\0" * 5000)
    append_records(folder, [a_boot("a")])
    assert goals(folder) == ["a"]


def test_a_write_that_is_cut_short_is_an_error_and_leaves_nothing(folder):
    (folder / RECORDS).write_bytes(line(a_boot("first")))
    size = (folder / RECORDS).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(LabError, match="No space left"):
            append_records(folder, [a_boot("second")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (folder / RECORDS).stat().st_size == size


APPENDER = """
import sys
from pathlib import Path
from evmperf.model.records import BootRecord
from evmperf.measure.runs.spool import append_records
for number in range(50):
    boot = BootRecord(goal=f"{sys.argv[2]} {number}", started_ns=1, duration_s=2.5, marks=())
    append_records(Path(sys.argv[1]), [boot])
"""


def test_two_processes_append_in_turn(folder):
    (folder / RECORDS).write_bytes(line(a_boot("first")) + b'{"schema"')
    words = [sys.executable, "-c", APPENDER, folder]
    processes = [subprocess.Popen([*words, name]) for name in "ab"]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert sorted(goals(folder)) == sorted(
        ["first", *(f"{name} {number}" for name in "ab" for number in range(50))]
    )


def test_who_cannot_have_the_lock_says_so(folder, monkeypatch):
    monkeypatch.setattr(spool, "_ALONE_S", 0.0)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(LabError, match="cannot be written"):
            append_records(folder, [a_boot("a")])
    finally:
        os.close(handle)


def test_a_file_of_nothing_but_damage_is_named_in_a_few_lines(folder, caplog):
    leave_out.cache_clear()
    (folder / RECORDS).write_bytes(b"{\n" * 1000 + line(a_boot("a")) + b"[" * 100_000 + b"\n")
    assert goals(folder) == ["a"]
    assert len(caplog.records) == 6
    assert "996 more lines" in caplog.records[-1].getMessage()
    assert goals(folder) == ["a"]
    assert len(caplog.records) == 6  # said once


def test_who_asks_whether_a_run_is_live_does_not_keep_it_from_being_held(folder):
    one = Spool(folder, Run("r", "b", "quick"))
    (one.folder / RECORDS).touch()
    asking = (one.folder / RECORDS).open("rb")
    fcntl.flock(asking, fcntl.LOCK_SH)  # as is_live does, for an instant
    holding = threading.Thread(target=one.hold)
    holding.start()
    holding.join(0.2)
    asking.close()
    holding.join(10)
    assert spool.is_live(one.folder)
    one.release()
