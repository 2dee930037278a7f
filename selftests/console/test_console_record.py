"""The console's record: every byte comes back from the file as it went in, within bounds of its time."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.boards.console import record
from evmperf.boards.console import record as console
from evmperf.boards.console.record import HEADER, POWER_ON, ConsoleRecord, History, Line
from evmperf.model import concealing
from evmperf.model.errors import LabError

records = st.builds(
    ConsoleRecord,
    mono_ns=st.integers(0, 1 << 62),
    wall_ns=st.integers(0, 4_000_000_000_000_000_000),
    kind=st.sampled_from("<>#"),
    data=st.binary(max_size=300),
    bound_ns=st.integers(0, 1 << 62),
)


def read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("console") / "console.log"
    path.write_bytes(content)
    return list(console.read(path))


@given(st.lists(records, max_size=5))
def test_records_come_back_as_they_were(tmp_path_factory, kept):
    back = read(tmp_path_factory, HEADER + b"".join(r.line() for r in kept))
    assert [(r.mono_ns, r.kind, r.data, r.bound_ns) for r in back] == [
        (r.mono_ns, r.kind, r.data, r.bound_ns) for r in kept
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
    record = ConsoleRecord(1_000_000_005, 1_700_000_000_123_456_000, "<", b"x", 1_500_000)
    moment = datetime.fromtimestamp(1_700_000_000, UTC)
    wall = f"{moment:%Y-%m-%dT%H:%M:%S}.123456Z"
    assert record.line() == f"1.000000005 {wall} < 0.001500000 b'x'\n".encode()


def test_a_line_cannot_carry_more_than_its_baud_allows():
    line = Line(115200)
    second = 10**9
    assert line.late_ns(second, 1) == pytest.approx(86_806, abs=1)
    # 5760 bytes take half a second: in one piece, or in five pieces within a millisecond
    assert line.late_ns(2 * second, 5760) == pytest.approx(second / 2)
    fresh = Line(115200)
    for n in range(4):
        fresh.late_ns(second + n, 1152)
    assert fresh.late_ns(second + 4, 1152) == pytest.approx(second / 2, abs=10)
    assert fresh.late_ns(2 * second, 1) == pytest.approx(86_806, abs=1)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 100)), min_size=1))
def test_what_comes_at_the_lines_rate_is_never_called_late(pieces):
    line, now, longest = Line(115200), 0, max(length for _, length in pieces)
    for pause, length in pieces:
        now += pause + round(length * 10**10 / 115200) + 1
        assert line.late_ns(now, length) <= longest * 10**10 / 115200 + 1


def test_a_power_on_starts_the_memory_anew_but_not_the_file(tmp_path):
    history = History()
    history.open(tmp_path / "console.log")
    history.feed(b"old", 1)
    history.event(POWER_ON, 2)
    history.feed(b"new", 3)
    history.close()
    assert [r.data for r in history.records()] == [POWER_ON.encode(), b"new"]
    assert [r.data for r in console.read(tmp_path / "console.log")] == [b"old", POWER_ON.encode(), b"new"]


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


def test_output_that_may_begin_a_secret_waits_within_bounds(tmp_path, monkeypatch):
    """A board may print the first character of its password for ever."""
    monkeypatch.setattr(concealing, "_learned", {"hunter2-of-the-lab"})
    history, file = History(), tmp_path / "console.log"
    history.open(file)
    for number in range(1, 101):
        history.feed(b"h" * 1000, number)
    assert sum(len(record.data) for record in console.read(file)) > 90_000
    history.feed(b" hunter2-of", 101)
    history.feed(b"-the-lab\n", 102)
    history.close()
    text = file.read_text()
    assert "hunter2" not in text
    assert b"".join(record.data for record in console.read(file)).endswith(b" " + b"*" * 18 + b"\n")


MS = 1_000_000
BAUD = 115200


def passed_on(pieces, held, cuts=(8, 64, 256)):
    """The records of pieces (ns, bytes) that a server passes on at once but in `held` (begin, end),
    and when each byte was said. The stamping process states 1.5 ms, as it does on a quiet host.
    """
    begin, until = held
    records, said, line = [], [], Line(BAUD)
    waiting = [(at, size) for at, size in pieces if begin <= at < until]

    def add(at, times):
        bound = max(1_500_000, line.late_ns(at, len(times)))
        records.append(ConsoleRecord(at, at, "<", b"x" * len(times), bound))
        said.extend(times)

    for at, size in [piece for piece in pieces if piece[0] < begin]:
        add(at, [at] * size)
    bytes_waiting = [at for at, size in waiting for _ in range(size)]
    at = until
    for cut in (*cuts, len(bytes_waiting)):
        if bytes_waiting:
            add(at, bytes_waiting[:cut])
            del bytes_waiting[:cut]
            at += 600_000
    for later, size in [piece for piece in pieces if piece[0] >= until]:
        add(max(later, at), [later] * size)
    return records, said


def outside(records, said):
    times = iter(said)
    return sum(next(times) < r.mono_ns - r.bound_ns for r in records for _ in r.data)


@pytest.mark.parametrize("cuts", [(8, 64, 256), (100_000,)])
@pytest.mark.parametrize(("held_ms", "size"), [(5, 6), (12, 8), (43, 11), (120, 8)])
def test_what_was_held_up_is_in_the_bounds_of_all_its_pieces(held_ms, size, cuts):
    pieces = [(n * MS, size) for n in range(1000, 3000)]
    records, said = passed_on(pieces, (1200 * MS, (1200 + held_ms) * MS), cuts)
    assert outside(records, said)  # the first piece looks like any other
    widened = record.widened(records, BAUD)
    assert outside(widened, said) == 0
    assert [r.data for r in widened] == [r.data for r in records]
    # What is far from it keeps its bound, once the line has had time for all that came.
    assert widened[0] == records[0]
    assert widened[-1] == records[-1] or size == 11


@pytest.mark.parametrize("every_ms", [1, 4, 16])
def test_a_line_that_is_used_in_full_in_pieces_is_not_held_up(every_ms):
    chance = random.Random(1)
    line, records, at = Line(BAUD), [], 0
    for _ in range(500):
        at += every_ms * MS
        stamp = at + chance.randrange(200_000)
        size = int(every_ms * 11.5)
        records.append(ConsoleRecord(stamp, stamp, "<", b"x" * size, max(2 * MS, line.late_ns(stamp, size))))
    for before, after in zip(records, record.widened(records, BAUD), strict=True):
        assert after.bound_ns - before.bound_ns < MS


def test_events_and_what_was_typed_stay_as_they_are():
    records = [ConsoleRecord(MS, MS, "#", b"power on"), ConsoleRecord(2 * MS, 0, ">", b"\n")]
    assert record.widened(records, BAUD) == records
    assert record.widened([], BAUD) == []


def test_a_long_record_takes_no_long_time():
    pieces = [(n * MS, 8) for n in range(1000, 41_000)]
    records, said = passed_on(pieces, (5000 * MS, 9000 * MS))
    assert outside(record.widened(records, BAUD), said) == 0


@pytest.mark.parametrize(("wire", "margin_ms"), [("serial", 1), ("raw", 3), ("rfc2217", 4)])
def test_every_wire_has_its_margin(wire, margin_ms):
    records = [ConsoleRecord(MS, MS, "#", b"power on"), ConsoleRecord(2 * MS, 0, "<", b"x", MS)]
    event, heard = record.bounded(records, wire, BAUD)
    assert event == records[0]
    assert heard.bound_ns == MS + margin_ms * MS
