"""The simulated meter of a virtual board, which speaks SCPI on the port of the power switch.

A virtual board has no rails, but the readings follow the board: zero while it is off, low while its
processor rests, and higher the more CPU time QEMU takes. A board that did not sleep shows it.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

RAILS = ((0.75, 4.88), (1.8, 2.06), (3.29, 2.5), (1.8, 0.56), (1.1, 0.99), (0.74, 0.01), (1.8, 0.01))
"""Volts, and milliwatts at rest, of channels 1 and up."""

_BUSY = 40.0
"""How many times the power at rest a processor takes that is busy."""
_QUERY = re.compile(r"MEAS(?:URE)?:(VOLT|CURR)(?::DC)?\? \(@(\d+)\)")
_IDENTITY = "*IDN?"
_WINDOW_S = 0.2
"""Seconds over which a processor is watched."""
_STALE_S = 1.0
"""Seconds after which a look at the processor says nothing of now."""


class SimulatedMeter:
    """Answers SCPI lines; `pid` gives QEMU's process, None while the power is off."""

    def __init__(self, name: str, pid: Callable[[], int | None]) -> None:
        self._name = name
        self._pid = pid
        self._seen: tuple[int, float, float] | None = None
        self._load = 0.0

    @staticmethod
    def understands(line: str) -> bool:
        """Whether a client's first line is SCPI, not HTTP."""
        return line == _IDENTITY or line.startswith("MEAS")

    async def answer(self, line: str) -> str:
        """The answer to a query, without its end of line; "" for an unknown one: instruments are silent."""
        if line == _IDENTITY:
            return f"evmperf,Virtual Meter,{self._name},1"
        match = _QUERY.fullmatch(line)
        if not match or not 1 <= int(match[2]) <= len(RAILS):
            return ""
        pid = self._pid()
        if pid is None:
            return _number(0.0)
        volts, rest = RAILS[int(match[2]) - 1]
        if match[1] == "VOLT":
            return _number(volts)
        return _number(rest * (1 + _BUSY * await self._share(pid)) / 1000 / volts)

    async def _share(self, pid: int) -> float:
        """Part of one CPU that the process takes, from 0 to 1."""
        now = time.monotonic()
        if self._seen is None or self._seen[0] != pid or now - self._seen[1] > _STALE_S:
            self._seen = (pid, now, _cpu_s(pid))
            await asyncio.sleep(_WINDOW_S)
            now = time.monotonic()
        _, since, before = self._seen
        if now - since >= _WINDOW_S:
            used = _cpu_s(pid)
            self._load = min(max((used - before) / (now - since), 0.0), 1.0)
            self._seen = (pid, now, used)
        return self._load


def _cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has had (proc(5)); 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _number(value: float) -> str:
    return f"{value:+.8E}"
