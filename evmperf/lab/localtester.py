"""This machine as the tester at the other end of the board's cable (`--tester local`)."""

import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Any

from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED
from evmperf.lab.tester import CommandTester
from evmperf.model.errors import EvmperfError, LabError

LOCAL = "local"
_TIMEOUT_S = 15.0


def is_local(tester: str) -> bool:
    """Whether a board's tester is this machine: `local`, or `local:INTERFACE`."""
    return tester.partition(":")[0] == LOCAL


class LocalTester(CommandTester):
    """A root shell here, with the tester's addresses until `close`; raises LabError."""

    def __init__(self, board: Board, net: Path = Path("/sys/class/net")) -> None:
        super().__init__(() if os.geteuid() == 0 else ("sudo", "-n"), "this machine")
        self._net = net
        self._added: list[str] = []
        if self._prefix:
            try:
                self.run("true", _TIMEOUT_S)
            except LabError as error:
                raise LabError(
                    "this machine as the tester needs root, for an address on the cable: run "
                    f"`sudo -v` first ({error})"
                ) from None
        links = self._ip("-4 address")
        holders = {e["local"]: link["ifname"] for link in links for e in link.get("addr_info", ())}
        wanted = _addresses(board)
        found = next((holders[address] for address in wanted if address in holders), "")
        interface = board.tester.partition(":")[2] or found or self._cable()
        if not re.fullmatch(r"[\w.@-]{1,15}", interface) or not (net / interface).exists():
            raise LabError(f"this machine has no network interface {interface!r}")
        self.limits = f"this machine, {os.cpu_count()} processors, {interface}, {self._speed(interface)}"
        """What bounds the figures that are measured against this machine."""
        try:
            for address, length in wanted.items():
                if address not in holders:
                    place = f"{address}/{length} dev {interface}"
                    self._do(f"ip address add {place}")
                    self._added.append(place)
                    self._do(f"ip link set {interface} up")
        except LabError:
            self.close()
            raise

    def close(self) -> None:
        """Put the addresses back as they were."""
        while self._added:
            self._do(f"ip address del {self._added.pop()}")

    def _cable(self) -> str:
        """The one wired interface with a carrier that does not lead to the world."""
        world = {route.get("dev") for route in self._ip("route show default")}
        wired = [path for path in sorted(self._net.iterdir()) if (path / "device").exists()]
        wired = [path for path in wired if not (path / "wireless").exists() and path.name not in world]
        found = [path.name for path in wired if _text(path / "carrier") == "1"]
        if len(found) != 1:
            which = f"{' and '.join(found)} may be" if found else "none is"
            raise LabError(
                f"which interface of this machine has the board's cable is not clear: {which} it; "
                f"say --tester {LOCAL}:INTERFACE, and look at the cable"
            )
        return found[0]

    def _speed(self, interface: str) -> str:
        speed = _text(self._net / interface / "speed")
        return f"{speed} Mbit/s" if speed.isdigit() else "speed unknown"

    def _ip(self, words: str) -> list[dict[str, Any]]:
        try:
            return list(json.loads(self._do(f"ip -j {words}") or "[]"))
        except ValueError as error:
            raise LabError(f"`ip -j {words}` of this machine did not answer in JSON") from error

    def _do(self, command: str) -> str:
        try:
            reply = self.run(command, _TIMEOUT_S)
        except EvmperfError as error:
            raise LabError(str(error)) from error
        if reply.status:
            raise LabError(f"`{command}` failed on this machine: {reply.text.strip()[-200:]}")
        return reply.text


def _addresses(board: Board) -> dict[str, int]:
    """The tester's addresses in the board's file, each with its prefix length."""
    found: dict[str, int] = {}
    for section in CABLED:
        if section in board.features:
            cable = board.options.cable(section)
            if cable.tester_address and cable.board_address:
                length = ipaddress.ip_interface(cable.board_address).network.prefixlen
                found[str(ipaddress.ip_address(cable.tester_address))] = length
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except (OSError, ValueError):  # a link that is down has no speed
        return ""
