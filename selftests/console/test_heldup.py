"""Bounds of what a server between board and lab was kept from passing on."""

from __future__ import annotations

import random

import pytest

from evmperf.boards.console import record
from evmperf.boards.console.record import ConsoleRecord, Line

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
