"""How an image gets onto a board's boot medium, as the board's file and its lab allow."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.lab.media import CardSwitch
from evmperf.model.errors import LabError, UsageError
from evmperf.provision import writer
from evmperf.provision.image import DiskImage
from evmperf.provision.network import NetworkWay
from evmperf.provision.remote import Host
from evmperf.provision.staging import Way
from evmperf.provision.writer import Content, Progress

_COMMAND_S = 3600.0


class NoWay(UsageError):
    """The board file names no way to put an image on the board. That is allowed."""


def choose(target: Any, board: Board, bench: LabgridBench) -> Way:
    """The way of a board; raises NoWay if it has none, UsageError or LabError for a wrong description."""
    if board.options.image.device:
        return NetworkWay(target, board, bench)
    if switch := CardSwitch.of(target):
        return CardWay(switch)
    if command := board.options.image.command:
        return CommandWay(command, board)
    raise NoWay(
        f"{board.file_name} gives no way to write an image to the board: add a card switch "
        f"(USBSDMuxDriver and USBStorageDriver), options.image.device or options.image.command "
        f"(docs/provisioning.md)"
    )


def write(host: Host, medium: str, image: DiskImage, progress: Progress) -> dict[str, Any]:
    """Make a medium at `host` equal to an image; what `writer.put` returns."""
    about = Content(image.hashes.size, image.hashes.content, image.name)
    source = writer.chunks_of(str(image.content), image.hashes.size)
    return host.put(medium, source, about, progress)


class CardWay(Way):
    """An SD card that a switch moves between board and host."""

    overwrites = "the card behind the card switch"

    def __init__(self, switch: CardSwitch) -> None:
        self._switch = switch

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Write the card at the host, and move it back into the board."""
        self._switch.to("host")
        try:
            prefix = self._switch.prefix()
            host = Host(prefix, "the exporter" if prefix else "this host")
            return write(host, self._switch.medium(), image, progress)
        finally:
            self._switch.to("dut")

    def ready(self) -> None:
        """Have the card in the board."""
        self._switch.to("dut")


class CommandWay(Way):
    """The lab's own command: snagboot for an empty board, or a flasher it has."""

    def __init__(self, command: str, board: Board) -> None:
        self._command, self._board = command, board
        if "{image}" not in command:
            raise UsageError(f"{board.file_name}: image.command must have {{image}} in it")
        self.overwrites = f"the medium that `{self._command}` writes"

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Call the command with the image as it was given; its own output is its error's reason."""
        command = self._command.replace("{image}", shlex.quote(str(image.file)))
        progress("write", 0, image.hashes.size)
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMMAND_S,
                cwd=Path(self._board.file).resolve().parent,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"`{command[:80]}` did not end within {_COMMAND_S:g} s") from None
        if done.returncode:
            said = (done.stderr + done.stdout).strip().splitlines() or ["without a message"]
            raise LabError(f"`{command[:80]}` ended with {done.returncode}: {said[-1][:200]}")
        return {"by": self._command}
