"""How far our stamp of a byte is behind the one that the bench took of it, closer to the board."""

from __future__ import annotations

import bisect
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evmperf.console.marks import find
from evmperf.console.record import Record, read
from evmperf.virtual import stamps
from selftests.speed.boards import Board, burners, labgrid_bench, spare_from_load, virtual_board
from selftests.speed.figures import Row, met, quantile

_BOOTS = 5
_GOAL_MS = 2.0
_PROMPT = "login: "


@dataclass
class _Delays:
    """Milliseconds by which our stamps are later."""

    chunks: list[float] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)

    def rows(self, load: str, reference: str) -> list[Row]:
        rows = []
        for what, values in (("marks", self.marks), ("chunks", self.chunks)):
            p99 = quantile(values, 0.99)
            rows.append(
                Row(
                    f"stamps, {load}: {what} of {_BOOTS} boots, n {len(values)}",
                    f"p50 {quantile(values, 0.5):.3f}, max {max(values):.3f} ms",
                    reference,
                    f"p99 {p99:.3f} ms",
                    f"<= {_GOAL_MS:g} ms",
                    met(p99, _GOAL_MS),
                )
            )
        return rows


def delays() -> list[Row]:
    """Boots with and without load, in turns."""
    idle, busy = _Delays(), _Delays()
    with virtual_board() as board, labgrid_bench(board) as bench:
        log = board.folder / "console.log"
        bench.record_console(log)
        spared = spare_from_load(board)
        strategy = bench._strategy
        strategy.target.activate(strategy.console)  # from here on we see every byte
        base, seen = board.virtual.status().console_bytes, 0
        for _ in range(_BOOTS):
            for series, load in ((idle, 0), (busy, 2)):
                with burners(load):
                    boot = bench.cold_boot("")
                    if boot.error:
                        raise boot.error
                    bench.off()
                records = _settled(board, log, base)
                _compare(records, seen, base, _theirs(board), series)
                seen = len(records)
    reference = "bench's stamp, " + ("spared the load" if spared else "itself under load")
    return idle.rows("idle", reference) + busy.rows("both cores loaded", reference)


def _settled(board: Board, log: Path, base: int) -> list[Record]:
    """The record, once it holds all that the bench saw."""
    deadline = time.monotonic() + 5
    while True:
        records = list(read(log))
        have = sum(len(record.data) for record in records if record.kind == "<")
        if have == board.virtual.status().console_bytes - base:
            return records
        if time.monotonic() > deadline:
            raise RuntimeError("our record of the console is not what the bench saw")
        time.sleep(0.05)


def _theirs(board: Board) -> Any:
    chunks = stamps.read(board.virtual.folder / "console.stamps")
    starts = [offset for offset, _, _ in chunks]

    def stamp(offset: int) -> int:
        return chunks[bisect.bisect_right(starts, offset) - 1][2]

    return stamp


def _compare(records: list[Record], seen: int, base: int, stamp: Any, series: _Delays) -> None:
    """Add the delays of the records after the first `seen`, and of the marks among them."""
    position = base + sum(len(record.data) for record in records[:seen] if record.kind == "<")
    fresh = [record for record in records[seen:] if record.kind == "<"]
    data = b"".join(record.data for record in fresh)
    begins, at = {}, 0
    for record in fresh:
        begins[record.mono_ns] = (at, record)
        at += len(record.data)
        series.chunks.append((record.mono_ns - stamp(position + at - 1)) / 1e6)
    for mark in find(records[seen:], _PROMPT).values():
        if mark.mono_ns not in begins:
            continue  # the power-on is no byte
        begin, record = begins[mark.mono_ns]
        text = mark.text.encode()
        # The mark's last byte lies in this record; of the first output it is the first byte.
        found = data.find(text, max(0, begin - len(text) + 1)) + len(text) - 1 if text else begin
        if not begin <= found < begin + len(record.data):
            raise RuntimeError(f"mark {mark.phase} is not where its stamp says")
        series.marks.append((mark.mono_ns - stamp(position + found)) / 1e6)
