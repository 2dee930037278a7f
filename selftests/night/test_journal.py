"""A night's journal that a crash has cut: later nights go on all the same."""

import json
import time

import pytest

from evmperf.commands.night.journal import open_night, read

PLAN = "boards: []"


def begin(results):
    journal = open_night(results, "x", PLAN, fresh=False)
    journal.note("begun", plan=PLAN, until=time.time() + 3600)
    journal.note("started", job="a", place="one", run="r-1")
    journal.close()
    return journal.folder / "journal.jsonl"


def test_a_journal_cut_at_any_byte_stops_no_later_night(tmp_path):
    file = begin(tmp_path)
    whole = file.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        file.write_bytes(whole[:cut])
        night = open_night(tmp_path, "x", PLAN, fresh=False)
        assert night.folder == file.parent
        night.note("started", job="b", place="two", run="r-2")
        night.close()
        jobs = [event["job"] for event in read(file.parent) if event["event"] == "started"]
        assert jobs == (["a", "b"] if cut == len(whole) - 1 else ["b"])


BAD = [
    b"{",
    b"[]",
    b"null",
    b"12",
    b"{}",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"event": []}',
    b'{"event": "begun", "at": 1}',
    b'{"event": "started", "at": 1, "job": "a"}',
    b'{"event": "measured", "at": 1, "job": "a", "place": "p", "run": "r", "ending": "moon", "sentence": ""}',
]


@pytest.mark.parametrize("bad", BAD)
def test_a_damaged_line_is_named_and_left_out(tmp_path, caplog, bad):
    file = begin(tmp_path)
    file.write_bytes(bad + b"\n" + file.read_bytes())
    night = open_night(tmp_path, "x", PLAN, fresh=False)
    assert night.folder == file.parent
    assert [event["event"] for event in read(night.folder)] == ["begun", "started"]
    night.close()
    assert f"{file} line 1: is damaged" in caplog.text


def test_what_is_written_is_read(tmp_path):
    file = begin(tmp_path)
    assert [json.loads(line) for line in file.read_text().splitlines()] == list(read(file.parent))
