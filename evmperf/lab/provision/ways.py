"""How an image gets onto a board's boot medium: by a card switch or the lab's own command."""

import shlex
from collections.abc import Callable

from evmperf.boards.board import Board
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision import writer
from evmperf.lab.provision.image import DiskImage
from evmperf.model.errors import LabError, UsageError


class Way:
    """One way of writing a board's boot medium."""

    overwrites: str
    """What will be overwritten, for people."""
    own_loader = True
    """Whether the board then starts by the image's own boot loader."""
    with_power = False
    """Whether the board itself writes; else its power is off meanwhile."""

    def put(self, image: DiskImage, begins: Callable[[], None]) -> None:
        """Make the medium equal to the image; calls `begins` before the first byte, when nothing stands
        against writing any more.
        """
        raise NotImplementedError

    def ready(self) -> None:
        """See, before each power-on, that the board has its medium."""


class CardWay(Way):
    """An SD card that a switch moves between board and host."""

    overwrites = "the card behind the card switch"

    def __init__(self, switch: CardSwitch) -> None:
        self._switch = switch

    def put(self, image: DiskImage, begins: Callable[[], None]) -> None:
        """Write the card at its host, and move it back into the board."""
        self._switch.to("host")
        try:
            medium, prefix = self._switch.medium(), self._switch.prefix()
            writer.write(medium, image, begins, self._switch.copy, prefix)
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

    def put(self, image: DiskImage, begins: Callable[[], None]) -> None:
        """Call the command with the image as it was given; its own output is its error's reason."""
        begins()
        command = self._command.replace("{image}", shlex.quote(str(image.file)))
        folder = shlex.quote(str(self._board.file.resolve().parent))
        done = writer.run(f"cd {folder} && {command}")
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines() or ["without a message"]
            raise LabError(f"`{command[:80]}` ended with {done.returncode}: {lines[-1][:200]}")
