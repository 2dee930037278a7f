"""The console's record: every byte comes back from the file as it went in."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.console import record as console
from evmperf.console.record import HEADER, POWER_ON, History, Record
from evmperf.model.errors import LabError

records = st.builds(
    Record,
    mono_ns=st.integers(0, 1 << 62),
    wall_ns=st.integers(0, 4_000_000_000_000_000_000),
    kind=st.sampled_from("<>#"),
    data=st.binary(max_size=300),
)


def read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("console") / "console.log"
    path.write_bytes(content)
    return list(console.read(path))


@given(st.lists(records, max_size=5))
def test_records_come_back_as_they_were(tmp_path_factory, kept):
    back = read(tmp_path_factory, HEADER + b"".join(r.line() for r in kept))
    assert [(r.mono_ns, r.kind, r.data) for r in back] == [
        (r.mono_ns, r.kind, r.data) for r in kept
    ]
    # the wall clock is written in microseconds
    assert all(abs(a.wall_ns - b.wall_ns) <= 1000 for a, b in zip(back, kept, strict=True))


@given(records, records, st.data())
def test_a_last_line_cut_anywhere_loses_only_itself(tmp_path_factory, first, last, data):
    line = last.line()
    kept = line[: data.draw(st.integers(0, len(line) - 1))]
    back = read(tmp_path_factory, HEADER + first.line() + kept)
    assert [r.data for r in back] == [first.data]


def test_the_wall_clock_is_utc():
    record = Record(1_000_000_005, 1_700_000_000_123_456_000, "<", b"x")
    moment = datetime.fromtimestamp(1_700_000_000, UTC)
    assert record.line() == f"1.000000005 {moment:%Y-%m-%dT%H:%M:%S}.123456Z < b'x'\n".encode()


@pytest.mark.parametrize("content", [b"", b"evmperf-console/2\n", b"U-Boot 2025.01\n"])
def test_a_file_of_another_format_is_refused(tmp_path_factory, content):
    with pytest.raises(LabError, match="not a console record"):
        read(tmp_path_factory, content)


def test_a_power_on_starts_the_memory_anew_but_not_the_file(tmp_path):
    history = History()
    history.open(tmp_path / "console.log")
    history.feed(b"old", 1)
    history.event(POWER_ON, 2)
    history.feed(b"new", 3)
    history.close()
    assert [r.data for r in history.records()] == [POWER_ON.encode(), b"new"]
    assert [r.data for r in console.read(tmp_path / "console.log")] == [
        b"old", POWER_ON.encode(), b"new",
    ]  # fmt: skip


@given(st.binary(max_size=200), st.integers(1, 10))
def test_a_tail_is_printable_lines_of_what_the_board_said(data, lines):
    history = History()
    history.feed(b"typed by us", 1, kind=">")
    history.feed(data, 2)
    tail = history.tail(lines)
    assert len(tail) <= lines
    assert all(line.isprintable() for line in tail)
    assert "typed by us" not in "".join(tail) or b"typed by us" in data


def test_a_record_that_cannot_be_written_is_a_lab_error_with_the_remedy():
    history = History()
    history._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    history.feed(b"x", 1)
    with pytest.raises(LabError, match=r"No space left on device.*--results"):
        history.check()
    history.check()  # said once
    assert [r.data for r in history.records()] == [b"x"]
    history.close()
