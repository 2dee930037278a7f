"""Commands and files over the console, against a bare socket that does the same."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from evmperf.lab.shell import LinuxShell
from evmperf.measure import shellstep
from selftests.instruments.speed.boards import virtual_board
from selftests.instruments.speed.figures import Row, ratio, seconds
from selftests.instruments.speed.reference import RawShell, drain
from selftests.instruments.speed.reference import seconds as timed
from selftests.support import virtualbench

_ROUNDS = 200
_REPEATS = {250: 3, 1000: 2}
"""How often a file is fetched, by its size in kB."""

_KINDS = {"text (seq)": "seq 1 1000000", "base64 of urandom": "head -c 4000000 /dev/urandom | base64"}
_FILE = "/dev/shm/evmperf-bench"


@dataclass(frozen=True)
class _Ends:
    """Both ways to the same shell."""

    shell: LinuxShell
    console: Any
    raw: RawShell

    def quiet(self) -> None:
        """Both have taken what the other caused."""
        self.raw.drain()
        drain(self.console)


@contextlib.contextmanager
def _logged_in() -> Iterator[_Ends]:
    with virtual_board() as board, virtualbench.reached(board.env_file) as bench:
        shell = bench.shell()
        driver = bench._strategy.shell
        raw = RawShell(board.virtual.record.serial_port, driver.prompt)
        try:
            yield _Ends(shell, driver.console, raw)
        finally:
            raw.close()


def round_trip() -> list[Row]:
    """`run("true")`."""
    ours: list[float] = []
    reference: list[float] = []
    with _logged_in() as ends:
        for _ in range(_ROUNDS):
            ends.quiet()
            ours.append(timed(lambda: ends.shell.run("true", 30)))
            ends.quiet()
            reference.append(timed(lambda: ends.raw.run("true")))
    return [ratio("round trip of run('true')", ours, reference, 2)]


def fetch() -> list[Row]:
    """Files of 250 kB and 1 MB, as a step's output and by `cat`."""
    rows = []
    with _logged_in() as ends:
        shellstep.install(ends.shell)
        for kind, command in _KINDS.items():
            rates: list[float] = []
            for size_kb in _REPEATS:
                more, rate = _fetch(ends, kind, command, size_kb)
                rows += more
                rates.append(rate)
            growth = (max(rates) / min(rates) - 1) * 100
            rows.append(Row(f"  growth, {kind}", figure=f"s/MB within {growth:.0f} %", goal="linear"))
    return rows


def _fetch(ends: _Ends, kind: str, command: str, size_kb: int) -> tuple[list[Row], float]:
    size = size_kb * 1000
    ends.shell.run(f"{command} | head -c {size} >{_FILE}", 60)
    by_step: list[float] = []
    by_cat: list[float] = []
    reference: list[float] = []

    def step() -> None:
        output = shellstep.run(ends.shell, f"cp {_FILE} $OUT/file", 300)
        if len(output.files["file"]) != size:
            raise RuntimeError(f"{len(output.files['file'])} bytes instead of {size}")

    def cat() -> None:
        text = ends.shell.run(f"cat {_FILE}", 300).text
        if len(text) != size:
            raise RuntimeError(f"{len(text)} bytes instead of {size}")

    for _ in range(_REPEATS[size_kb]):
        for series, action in (
            (by_step, step),
            (by_cat, cat),
            (reference, lambda: ends.raw.run(f"cat {_FILE}")),
        ):
            ends.quiet()
            series.append(timed(action))

    def told(series: list[float]) -> str:
        middle = statistics.median(series)
        return f"{seconds(middle)}, {size_kb / 1000 / middle:.2f} MB/s"

    rows = []
    for way, series in (("step", by_step), ("cat", by_cat)):
        row = ratio(f"fetch {size_kb} kB, {kind}, {way}", series, reference, 2)
        rows.append(replace(row, evmperf=told(series), reference=told(reference)))
    return rows, statistics.median(by_step) / size_kb * 1000
