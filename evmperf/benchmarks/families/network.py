"""What network benchmarks share: the link between board and tester, servers, and putting back: undoing
commands are noted in a file on the machine, newest first, and carried out by a clean-up step.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.benchmarks.benchmark import Option
from evmperf.benchmarks.step import CleanUp, Prepare, Step, Where
from evmperf.boards.board import Board
from evmperf.boards.options import Cable
from evmperf.model.results import Direction, Metric
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
_MTU = 1500
_CARRIER_S = 10
_SERVER_S = 5

THROUGHPUT = Metric("throughput", Unit.MEGABIT_PER_SECOND, Direction.HIGHER, "THROUGHPUT", 0.001, 400_000)
_SERVERS = {"netserver": "netserver -D -N -p {port}", "iperf3": "iperf3 -s -p {port}"}


def board_ip(cable: Cable) -> str:
    """The board's address without its prefix length."""
    return str(ipaddress.ip_interface(cable.board_address).ip)


def conditions(board: Board, section: str) -> dict[str, str]:
    """What to note of a section's cable with each result."""
    cable = board.options.cable(section)
    return {"interface": cable.interface, "link_mbit": str(cable.link_mbit or "unknown")}


def options(section: str) -> tuple[Option, ...]:
    """The options without which there is no link."""
    return tuple((section, key) for key in ("interface", "board_address", "tester_address"))


def changing(name: str, command: str, *, where: Where = Where.BOARD, timeout_s: float = 30) -> Prepare:
    """A step that may use `no` and `undo`; `put_back` must follow it in the end."""
    return Prepare(name, _SHELL("changing", command=command), timeout_s, 0.5, where=where)


def put_back(where: Where = Where.BOARD) -> CleanUp:
    """Undo everything that steps have noted on that machine."""
    return CleanUp(f"put back on {where}", _SHELL("put_back"), 30, 0.3, where=where)


def over_link(
    board: Board, section: str, server: NetworkServer, step: Step, before: Sequence[Step] = ()
) -> list[Step]:
    """A measurement over a section's cable, beside a server; `before` are steps before the server's start."""
    return [prepare(board, section), *before, server.start(), step, server.stop(), put_back()]


def prepare(board: Board, section: str) -> Prepare:
    """Bring up the board's interface; fails with the reason unless the tester answers through it."""
    cable = board.options.cable(section)
    about = {"i": cable.interface, "device": f"/sys/class/net/{cable.interface}", "section": section}
    speed = f"{_SHELL('speed', mbit=cable.link_mbit, **about)};" if cable.link_mbit else ""
    about |= {"address": cable.board_address, "tester": cable.tester_address, "speed": speed}
    command = _SHELL("prepare", mtu=_MTU, tries=_CARRIER_S * 5, **about)
    return changing("prepare", command, timeout_s=_CARRIER_S + 60)


@dataclass(frozen=True)
class NetworkServer:
    """netserver or iperf3 on one of the machines, on a port that nobody else uses there."""

    tool: str
    where: Where
    port: int

    def start(self) -> Prepare:
        """Start it; done when it listens."""
        server = _SERVERS[self.tool].format(port=self.port)
        about = {**vars(self), "server": server, "hex": f"{self.port:04X}", "file": self._file}
        text = _SHELL("start", tries=_SERVER_S * 10, **about)
        return changing(f"start {self.tool}", text, where=self.where)

    def stop(self) -> CleanUp:
        """End it with what it has started; nothing happens to servers of others."""
        return CleanUp(f"stop {self.tool}", _SHELL("stop", file=self._file), 30, 0.2, where=self.where)

    @property
    def _file(self) -> str:
        return f"${{OUT%/*}}/{self.tool}-{self.port}"
