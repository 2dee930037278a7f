"""A process that asks a board over the network, and says from when on it answers.

It is a process of its own for its priority, as the stamper is, and because it may have to run in another
network namespace. A question goes out each interval whether or not the one before was answered, so that a
lost one costs one interval. On standard output come lines of JSON, a `Turn` each, until standard input ends.

A kernel that does not know a board's MAC address asks for it once a second and keeps packets until then. So
each end has its own ARP requests, in frames, and the echo requests of ping are frames, too; the answers show
which machine sent them. That needs CAP_NET_RAW; without it, and behind a router, answers are less exact.
"""

import contextlib
import errno
import ipaddress
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from evmperf.boards import ends
from evmperf.boards.options import End
from evmperf.lab.stamper import be_undisturbed

_ARP, _IP, _ALL, _ICMP, _ASK, _TELL = 0x0806, 0x0800, 3, 1, 1, 2
_SOL_PACKET, _IGNORE_OUTGOING = 263, 23
"""Of packet(7) and linux/if_packet.h, Linux 4.20."""
_ECHO = struct.Struct("!BBHHH")
_ID = 0xE7F
_UP_EVERY_NS = 250_000_000
"""Between two questions to a board that answers."""
_GONE_NS = 500_000_000
"""A board that answers no ping for so long is down."""
_KERNEL_ARP_NS = 1_000_000_000
"""How often the kernel asks for an unknown MAC address (net.ipv4.neigh.default.retrans_time_ms)."""
_PATIENCE_NS, _READING_NS = 300_000_000, 5_000_000_000
"""How long a connection may be under way, and an answer of HTTP."""
_RESTS = 50
"""A server that answers otherwise is left alone so many times as long as it worked for the answer."""
_FLYING = 16
"""Connections under way at most."""
_STATUS_BYTES = 64


class Turn(msgspec.Struct, frozen=True):
    """An end began to answer (`is_up`), or stopped, between two moments of CLOCK_MONOTONIC in ns; `mac` is
    who answers, `trouble` why nobody is asked, or who else answers.
    """

    name: str
    is_up: bool = False
    since_ns: int = 0
    mono_ns: int = 0
    mac: str = ""
    trouble: str = ""


def _tell(turn: Turn) -> None:
    os.write(sys.stdout.fileno(), msgspec.json.encode(turn) + b"\n")


class _Cable:
    """Frames to one address on a network of this machine, and who has it: `mac`, and when nobody had it yet
    (`missed_ns`). Raises OSError.
    """

    def __init__(self, name: str, address: str, wanted: str) -> None:
        words = ["ip", "-j", "route", "get", address]
        asked = subprocess.run(words, capture_output=True, check=False)
        route = json.loads(asked.stdout or "[{}]")[0]
        if "prefsrc" not in route or "gateway" in route:
            raise OSError(f"{address} is on no cable of this machine")
        self._board = ipaddress.IPv4Address(address).packed
        self._own = ipaddress.IPv4Address(route["prefsrc"]).packed
        mac = Path(f"/sys/class/net/{route['dev']}/address").read_text("ascii")
        self._own_mac = bytes.fromhex(mac.strip().replace(":", ""))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        # Without it, which older kernels lack, the others' questions wake each of us.
        with contextlib.suppress(OSError):
            self.socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
        self.socket.bind((route["dev"], _ALL))
        self.socket.setblocking(False)
        self._name, self._wanted = name, wanted.lower()
        self.mac, self.missed_ns = "", time.monotonic_ns()
        self._asked_ns = [self.missed_ns]
        self._heard_ns = 0
        self._foreign = ""

    def ask(self) -> None:
        """Ask for the board's MAC address, seldom once it is known: the answer tells the kernel, too. After
        four questions without an answer it is unknown again.
        """
        now = time.monotonic_ns()
        if self.mac and now - self._heard_ns > 4 * _UP_EVERY_NS:
            self.mac = ""
        if self.mac and now - self._asked_ns[-1] < _UP_EVERY_NS:
            return
        self._asked_ns = [self._asked_ns[-1], now]
        body = struct.pack("!HHBBH", 1, _IP, 6, 4, _ASK) + self._own_mac + self._own + bytes(6) + self._board
        self._send(b"\xff" * 6, _ARP, body)

    def echo(self, number: int) -> None:
        """Send an echo request to the board."""
        icmp = _ECHO.pack(8, 0, _sum(_ECHO.pack(8, 0, 0, _ID, number)), _ID, number)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(icmp), 0, 0, 64, _ICMP, 0) + self._own + self._board
        mac = bytes.fromhex(self.mac.replace(":", ""))
        self._send(mac, _IP, head[:10] + struct.pack("!H", _sum(head)) + head[12:] + icmp)

    def heard(self) -> int | None:
        """Take a frame, if one is there; returns the number of the echo request that it answers."""
        try:
            frame = self.socket.recv(2048)
        except OSError:  # none, or the interface went down
            return None
        kind, body = int.from_bytes(frame[12:14], "big"), frame[14:]
        if kind == _ARP and body[6:8] == struct.pack("!H", _TELL) and body[14:18] == self._board:
            self._learn(body[8:14].hex(":"))
        elif kind == _IP and body[9:10] == bytes((_ICMP,)) and body[12:16] == self._board:
            start = (body[0] & 15) * 4
            if len(body) < start + _ECHO.size:
                return None  # cut
            answer, _, _, identity, echoed = _ECHO.unpack_from(body, start)
            if (answer, identity, frame[6:12].hex(":")) == (0, _ID, self.mac):
                return int(echoed)
        return None

    def _learn(self, mac: str) -> None:
        self._heard_ns = time.monotonic_ns()
        if self._wanted and mac != self._wanted:
            if mac != self._foreign:
                self._foreign = mac
                _tell(Turn(self._name, mac=mac, trouble=f"{mac} has its address, not {self._wanted}"))
        elif not self.mac:
            self.mac, self.missed_ns = mac, self._asked_ns[0]

    def _send(self, mac: bytes, kind: int, payload: bytes) -> None:
        with contextlib.suppress(OSError):  # an interface that is down
            self.socket.send(mac + self._own_mac + struct.pack("!H", kind) + payload)


def _sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    folded: int = total + (total >> 16)
    return ~folded & 0xFFFF


def _ping(name: str, end: End) -> None:
    """Ask for ever; a board answers since some time after the last request that it missed."""
    cable = _Cable(name, end.ping, end.mac)
    interval_ns, is_up = end.interval_ms * 1_000_000, False
    sent_ns: dict[int, int] = {}
    number, due, last_ns = 0, time.monotonic_ns(), 0
    while True:
        known = cable.mac
        if (now := time.monotonic_ns()) >= due:
            due = now + (_UP_EVERY_NS if is_up else interval_ns)
            if not is_up:
                cable.ask()
        elif select.select([cable.socket], [], [], (due - now) / 1e9)[0]:
            answered = cable.heard()
            came_ns = time.monotonic_ns()
            if answered in sent_ns:
                if not is_up:
                    # What the echo took, the answer before it may have taken, too.
                    missed_ns = cable.missed_ns - (came_ns - sent_ns[answered])
                    before_ns = sent_ns.get((answered - 1) & 0xFFFF, 0)
                    _tell(Turn(name, True, max(missed_ns, before_ns), came_ns, cable.mac))
                is_up, last_ns = True, came_ns
            if cable.mac == known:
                continue
        if is_up and now - last_ns > _GONE_NS:
            is_up, cable.mac = False, ""
            sent_ns.clear()
            _tell(Turn(name, since_ns=last_ns, mono_ns=now))
        if cable.mac:
            number = (number + 1) & 0xFFFF
            sent_ns[number] = time.monotonic_ns()
            sent_ns.pop((number - _FLYING) & 0xFFFF, 0)
            cable.echo(number)


class _Try:
    """One connection, and what came of it."""

    def __init__(self, end: End, family: int, place: tuple[str, int]) -> None:
        self.began_ns = time.monotonic_ns()
        self.connection = socket.socket(family, socket.SOCK_STREAM)
        self.connection.setblocking(False)
        self.is_connected = False
        self._end, self._said = end, b""
        # Without a link such a socket is writable and has no error, as if it were connected.
        self._is_begun = self.connection.connect_ex(place) in (0, errno.EINPROGRESS)

    def ended(self) -> bool | None:
        """Whether its answer is the wanted one, None while it is under way."""
        limit_ns = _READING_NS if self.is_connected else _PATIENCE_NS
        is_silent = time.monotonic_ns() - self.began_ns > limit_ns
        try:
            return self._went_on() if self._is_begun and not is_silent else False
        except BlockingIOError:
            return None
        except OSError:
            return False

    def _went_on(self) -> bool | None:
        if not self.is_connected:
            if not select.select([], [self.connection], [], 0)[1]:
                return None
            if self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return False
            self.is_connected = True
            if self._end.tcp:
                return True
            url = urlsplit(self._end.http)
            query = f"?{url.query}" if url.query else ""
            text = f"GET {url.path or '/'}{query} HTTP/1.0\r\nHost: {url.netloc}\r\n\r\n"
            self.connection.send(text.encode())
        more = self.connection.recv(_STATUS_BYTES)
        self._said += more
        if more and b"\n" not in self._said and len(self._said) < _STATUS_BYTES:
            return None
        return self._said.startswith(b"HTTP/") and self._said.split()[1:2] == [str(self._end.status).encode()]


def _connect(name: str, end: End) -> None:
    """Connect for ever; an end answers since some time after the last try that failed began."""
    host, port = ends.address(end)
    family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    cable: _Cable | None = None
    with contextlib.suppress(OSError, ValueError):
        cable = _Cable(name, str(place[0]), end.mac)
    is_up, tries = False, list[_Try]()
    failed_ns = due = time.monotonic_ns()
    while True:
        if (now := time.monotonic_ns()) >= due:
            due = now + (_UP_EVERY_NS if is_up else end.interval_ms * 1_000_000)
            if cable and not is_up:
                cable.ask()
            is_there = not cable or bool(cable.mac)  # no packet goes to a board without a MAC address
            if is_there and len(tries) < _FLYING and not any(one.is_connected for one in tries):
                tries.append(_Try(end, family, (str(place[0]), int(place[1]))))
        reading = [one.connection for one in tries if one.is_connected]
        writing = [one.connection for one in tries if not one.is_connected]
        reading += [cable.socket] if cable else []
        select.select(reading, writing, [], max(due - time.monotonic_ns(), 0) / 1e9)
        if cable:
            cable.heard()
        for one in list(tries):
            if (ended := one.ended()) is None:
                continue
            one.connection.close()
            tries.remove(one)
            came_ns = time.monotonic_ns()
            if ended and not is_up and not (cable and end.mac and not cable.mac):
                missed = [t.began_ns for t in tries if t.began_ns < one.began_ns]
                since_ns = max(failed_ns, *missed, cable.missed_ns if cable else 0)
                since_ns -= 0 if cable else _KERNEL_ARP_NS
                _tell(Turn(name, True, since_ns, came_ns, cable.mac if cable else ""))
                is_up = True
            elif not ended:
                failed_ns = max(failed_ns, one.began_ns)
                if one.is_connected and not is_up:
                    due = max(due, came_ns + min(_RESTS * (came_ns - one.began_ns), _UP_EVERY_NS))
            if is_up and not ended and one.began_ns > due - 2 * _UP_EVERY_NS:
                is_up = False
                _tell(Turn(name, since_ns=one.began_ns, mono_ns=came_ns))
                if cable:
                    cable.mac = ""


def main(text: str) -> int:
    """Ask for the ends in `text`, JSON by name; see the module's docstring."""
    be_undisturbed()

    def ask(name: str, end: End) -> None:
        try:
            (_ping if end.ping else _connect)(name, end)
        except PermissionError:
            _tell(Turn(name, trouble="asking it needs the right to send frames (root, or CAP_NET_RAW)"))
        except OSError as error:
            _tell(Turn(name, trouble=error.strerror or str(error)))

    asked: Mapping[str, End] = msgspec.json.decode(text, type=dict[str, End])
    for pair in asked.items():
        threading.Thread(target=ask, args=pair, daemon=True).start()
    while os.read(sys.stdin.fileno(), 1):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
