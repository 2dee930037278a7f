"""How far our stamp of a byte is behind the one that was taken of it closer to the board.

A mark whose stated bound exceeds what a boot time allows is refused, so it does not count here;
how many those were is said.
"""

import contextlib
import time
from dataclasses import dataclass, field

from evmperf.boards.console.marks import ALLOWED_S, find
from evmperf.boards.console.record import bounded, read
from selftests.instruments.speed.boards import BURN, COMPILE, burners, spare_from_load, virtual_board
from selftests.instruments.speed.figures import Row, met, quantile
from selftests.support import virtualbench
from selftests.support.stamps import BenchStamps
from selftests.support.talking import (
    MS,
    WIRES,
    TalkingBoard,
    as_marks,
    bounds_ms,
    delays_ms,
    outside,
    ser2net_program,
)

_BOOTS = 5
_P99_MS = 2.0
_MOST_MS = 20.0
_TIMES = 5
"""How many times the delay a stated bound may be."""
_PROMPT = "login: "

_RUNS, _PIECES, _SIZE, _PAUSE_NS = 20, 2000, 8, MS
"""What a talking board says in each run: 8 bytes a millisecond for 2 s, 69 % of what 115200 baud carry."""
_LOADS = {"idle": (0, ""), "both cores loaded": (2, BURN), "beside a compiler": (2, COMPILE)}
_STOP_S = 30


@dataclass
class _Delays:
    """Milliseconds by which our stamps are later, of what is not refused; and what is."""

    bytes: list[float] = field(default_factory=list)
    marks: list[float] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    """Milliseconds that the marks state, those of refused ones among them."""
    refused: int = 0
    wrong: int = 0
    """Bytes that had been there before their stamp's bound begins."""

    def rows(self, load, reference):
        rows = []
        for what, values in (("marks", self.marks), ("bytes", self.bytes)):
            p99, most = quantile(values, 0.99), max(values)
            refused = f", {self.refused} refused" if what == "marks" else ""
            good = what == "bytes" or (p99 <= _P99_MS and most <= _MOST_MS)
            rows.append(
                Row(
                    f"stamps, {load}: {what} of {_BOOTS} boots, n {len(values)}{refused}",
                    f"p50 {quantile(values, 0.5):.3f}, max {most:.3f} ms",
                    reference,
                    f"p99 {p99:.3f} ms",
                    f"<= {_P99_MS:g} ms, max {_MOST_MS:g}" if what == "marks" else "",
                    ("yes" if good else "NO") if what == "marks" else "",
                )
            )
        stated, most = quantile(self.bounds, 0.99), _TIMES * quantile(self.marks, 0.99)
        return [
            *rows,
            Row(
                f"stamps, {load}: bounds of marks, n {len(self.bounds)}",
                f"p50 {quantile(self.bounds, 0.5):.3f}, max {max(self.bounds):.3f} ms",
                reference,
                f"p99 {stated:.3f} ms",
                f"<= {_TIMES} times the delay's p99, {most:.1f} ms",
                met(stated, most),
            ),
            Row(
                f"stamps, {load}: bytes outside the bound of their stamp",
                str(self.wrong),
                reference,
                goal="0",
                met=met(self.wrong, 0),
            ),
        ]


def delays():
    """Boots with and without load, in turns."""
    idle, busy = _Delays(), _Delays()
    with virtual_board() as board, virtualbench.reached(board.env_file) as bench:
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
                # At the rate that the board file says: QEMU's UART is faster than a real one.
                records = bounded(_settled(board, log, base), "raw", strategy.console.port.speed)
                _compare(records, seen, base, BenchStamps(board.virtual), series)
                seen = len(records)
    reference = "bench's stamp, " + ("spared the load" if spared else "itself under load")
    return idle.rows("idle", reference) + busy.rows("both cores loaded", reference)


def _settled(board, log, base):
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


def _compare(records, seen, base, theirs, series):
    """Add the delays of the records after the first `seen`, and of the marks among them."""
    position = base + sum(len(record.data) for record in records[:seen] if record.kind == "<")
    fresh = [record for record in records[seen:] if record.kind == "<"]
    data = b"".join(record.data for record in fresh)
    begins, at = {}, 0
    for record in fresh:
        begins[record.mono_ns] = (at, record)
        for byte in range(len(record.data)):
            came_ns, passed_ns = theirs.of(position + at + byte)
            series.bytes.append((record.mono_ns - came_ns) / 1e6)
            series.wrong += not came_ns <= record.mono_ns <= passed_ns + record.bound_ns
        at += len(record.data)
    for mark in find(records[seen:], _PROMPT).values():
        if mark.mono_ns not in begins:
            continue  # the power-on is no byte
        series.bounds.append(mark.error_s * 1000)
        if mark.error_s > ALLOWED_S:
            series.refused += 1
            continue
        begin, record = begins[mark.mono_ns]
        text = mark.text.encode()
        # The mark's last byte lies in this record; of the first output it is the first byte.
        found = data.find(text, max(0, begin - len(text) + 1)) + len(text) - 1 if text else begin
        if not begin <= found < begin + len(record.data):
            raise RuntimeError(f"mark {mark.phase} is not where its stamp says")
        series.marks.append((mark.mono_ns - theirs.of(position + found)[0]) / 1e6)


def wires():
    """The same of boards that say when they say what, over each kind of wire and in distress."""
    rows = []
    for wire in WIRES:
        if wire in ("ser2net", "rfc2217") and not ser2net_program():
            rows.append(Row(f"stamps over {wire}", "not measured: ser2net is not installed"))
            continue
        for load, burning in _LOADS.items():
            with burners(*burning):
                heard = [_heard(wire, _PIECES) for _ in range(_RUNS)]
            rows.append(_row(f"stamps over {wire}, {load}, {_RUNS} runs", heard))
    with burners(2):
        heard = [_heard("raw", _STOP_S * 1000, _STOP_S)]
    rows.append(_row(f"stamps, loaded, reader stopped for {_STOP_S} s", heard))
    return rows


_Heard = tuple[list[float], list[float], int]
"""Delays and bounds of each byte in ms, and how many bytes were outside their bound."""


def _heard(wire, pieces, stopped_s=0.0):
    """What is heard of a board; nobody reads at first."""
    with contextlib.closing(TalkingBoard(wire, pieces, _SIZE, _PAUSE_NS)) as board:
        board.go()
        time.sleep(stopped_s)
        frames, said = as_marks(board.frames(120), wire), board.said()
    return delays_ms(frames, said), bounds_ms(frames), outside(frames, said)


def _row(what, heard):
    """Delays and bounds of all bytes; how many would be refused as marks of a short boot is said."""
    delays = [delay for run, _, _ in heard for delay in run]
    bounds = [bound for _, run, _ in heard for bound in run]
    wrong = sum(outside for _, _, outside in heard)
    refused = sum(bound > ALLOWED_S * 1000 for bound in bounds)
    return Row(
        f"{what}: bytes, n {len(delays)}, {refused} refused, {wrong} outside their bound",
        f"p50 {quantile(delays, 0.5):.3f}, max {max(delays):.3f} ms",
        f"stated p99 {quantile(bounds, 0.99):.1f}, max {max(bounds):.1f} ms",
        f"p99 {quantile(delays, 0.99):.3f} ms",
        "0 outside",
        met(wrong, 0),
    )
