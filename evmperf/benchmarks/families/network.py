"""What network benchmarks share: the link between board and tester, servers, and putting back.

Every change is noted in a file of undoing commands on the machine it was made on, newest first;
an `always` step carries them out.
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
from evmperf.model.units import Unit

_MTU = 1500
_CARRIER_S = 10
_SERVER_S = 5

_SH = (
    'no() { echo "$*"; exit 3; }; undo_file=${OUT%/*}/undo; '
    'undo() { { echo "$1"; [ ! -e $undo_file ] || cat $undo_file; } >$undo_file.new && '
    "mv $undo_file.new $undo_file; }; "
)
"""Start of a step that changes something: `no REASON` ends it, `undo COMMAND` is carried out later.

Undoing is noted after the change: before it, what somebody else has set up could be undone.
"""

_PUT_BACK = (
    "f=${OUT%/*}/undo; [ ! -e $f ] || { r=0; while read -r line; do "
    'sh -c "$line" || { r=1; echo "could not be put back: $line"; }; done <$f; rm $f; exit $r; }'
)

_SERVERS = {"netserver": "netserver -D -N -p {port}", "iperf3": "iperf3 -s -p {port}"}


def board_ip(cable: Cable) -> str:
    """The board's address without its prefix length."""
    return str(ipaddress.ip_interface(cable.board_address).ip)


def conditions(board: Board, section: str) -> dict[str, str]:
    """What to note of a section's cable with each result."""
    cable = board.options.cable(section)
    return {"interface": cable.interface, "link_mbit": str(cable.link_mbit or "unknown")}


def options(section: str, prefix: str = "") -> tuple[Option, ...]:
    """The options without which there is no link."""
    keys = ("interface", "board_address", "tester_address")
    return tuple((section, f"{prefix}{key}") for key in keys)


def changing(name: str, command: str, *, where: Where = Where.BOARD, timeout_s: float = 30) -> Prepare:
    """A step that may use `no` and `undo`; `put_back` must follow it in the end."""
    return Prepare(name, f"{_SH}{command}", timeout_s, 0.5, where=where)


def put_back(where: Where = Where.BOARD) -> CleanUp:
    """Undo everything that steps have noted on that machine."""
    return CleanUp(f"put back on {where}", _PUT_BACK, 30, 0.3, where=where)


def over_link(
    board: Board, section: str, server: NetworkServer, step: Step, before: Sequence[Step] = ()
) -> list[Step]:
    """A measurement over a section's cable, beside a server; `before` are steps before the server's start."""
    return [prepare(board, section), *before, server.start(), step, server.stop(), put_back()]


def throughput(title: str, name: str = "throughput", high: float = 400_000) -> Metric:
    """The column of a throughput in Mbit/s."""
    return Metric(name, Unit.MEGABIT_PER_SECOND, Direction.HIGHER, title, 0.001, high)


def kpps(title: str, low: float = 0.001, high: float = 300_000) -> Metric:
    """The column of thousands of packets a second."""
    return Metric("kpps", Unit.KILOPACKET_PER_SECOND, Direction.HIGHER, title, low, high)


def prepare(board: Board, section: str) -> Prepare:
    """Bring up the board's interface; fails with the reason unless the tester answers through it."""
    cable = board.options.cable(section)
    i, device = cable.interface, f"/sys/class/net/{cable.interface}"
    speed = (
        f's=$(cat {device}/speed); [ "$s" = {cable.link_mbit} ] || '
        f'no "{i} runs at $s instead of {cable.link_mbit} Mbit/s: check the cable and its other end"; '
        if cable.link_mbit
        else ""
    )
    return changing(
        "prepare",
        f'[ -e {device} ] || no "the board has no network interface {i}: '
        f'correct options.{section} in the board file"; '
        f"[ $(($(cat {device}/flags) & 1)) = 1 ] || "
        f'{{ ip link set {i} up || exit 3; undo "ip link set {i} down"; }}; '
        f'n=0; until [ "$(cat {device}/carrier)" = 1 ]; do [ $n -lt {_CARRIER_S * 5} ] || '
        f'no "{i} has no carrier: check the cable and that its other end is up"; '
        f"n=$((n + 1)); sleep 0.2; done; "
        f"m=$(cat {device}/mtu); [ $m = {_MTU} ] || {{ ip link set {i} mtu {_MTU} || exit 3; "
        f'undo "ip link set {i} mtu $m"; }}; '
        f"{speed}"
        f'ip -o addr show dev {i} | grep -qF " {cable.board_address} " || '
        f"{{ ip addr add {cable.board_address} dev {i} || exit 3; "
        f'undo "ip addr del {cable.board_address} dev {i}"; }}; '
        f'case "$(ip -o route get {cable.tester_address})" in *" dev {i} "*) ;; '
        f'*) no "the route to {cable.tester_address} does not use {i}: another interface of the board '
        f'has an address in that network";; esac; '
        # The first packet after a link came up may get lost.
        f"p='ping -q -W 2 {cable.tester_address}'; $p -c 1 >/dev/null || $p -c 5 >/dev/null || "
        f'no "the tester does not answer at {cable.tester_address} over {i}: check its address and cable"',
        timeout_s=_CARRIER_S + 60,
    )


@dataclass(frozen=True)
class NetworkServer:
    """netserver or iperf3 on one of the machines, on a port that nobody else uses there."""

    tool: str
    where: Where
    port: int

    def start(self) -> Prepare:
        """Start it; done when it listens."""
        # proc(5): local address, remote address, and 0A for a listening socket.
        listening = f"grep -qs ':{self.port:04X} [0-9A-F]*:0000 0A ' /proc/net/tcp /proc/net/tcp6"
        command = _SERVERS[self.tool].format(port=self.port)
        text = (
            f"{_PUT_BACK_SERVER.format(file=self._file)}; {listening} && "
            f'no "port {self.port} of the {self.where} is taken: measure again"; '
            f"setsid {command} >{self._file}.log 2>&1 & p=$!; echo $p >{self._file}; n=0; "
            f"until {listening}; do "
            f'kill -0 $p || no "{self.tool} does not start on the {self.where}: '
            f'$(tail -n 1 {self._file}.log)"; '
            f'[ $n -lt {_SERVER_S * 10} ] || no "{self.tool} on the {self.where} does not listen"; '
            f"n=$((n + 1)); sleep 0.1; done"
        )
        return changing(f"start {self.tool}", text, where=self.where)

    def stop(self) -> CleanUp:
        """End it with what it has started; nothing happens to servers of others."""
        text = _PUT_BACK_SERVER.format(file=self._file)
        return CleanUp(f"stop {self.tool}", text, 30, 0.2, where=self.where)

    @property
    def _file(self) -> str:
        return f"${{OUT%/*}}/{self.tool}-{self.port}"


_PUT_BACK_SERVER = (
    "if [ -e {file} ]; then read -r g <{file}; kill -9 -$g 2>/dev/null; n=0; "
    "while kill -0 $g 2>/dev/null && [ $n -lt 50 ]; do n=$((n + 1)); sleep 0.1; done; "
    "rm -f {file} {file}.log; fi"
)
"""A killed server is waited for, so that its port is free again."""
