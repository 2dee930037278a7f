"""How an image gets onto a board's boot medium: by a card switch or the lab's own command; what all ways
share, and the lab's TFTP and HTTP servers.
"""

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labgrid.driver.exception import ExecutionError
from labgrid.exceptions import NoDriverFoundError

from evmperf.boards.board import Board
from evmperf.lab.media import CardSwitch
from evmperf.model.errors import LabError, UsageError
from evmperf.provision import writer
from evmperf.provision.image import DiskImage
from evmperf.provision.remote import Host
from evmperf.provision.writer import Content, Progress

_COMMAND_S = 3600.0
_NOTHING = re.compile(r"Retry count exceeded|TFTP server died|\bT( T)+\s*$", re.MULTILINE)
"""What U-Boot prints when nothing comes any more (net/tftp.c, net/arp.c)."""
_REFUSED = re.compile(r"TFTP error: .*")
_BEGUN, _ENDED = "Loading: ", "Bytes transferred"
"""Before the marks (#) of a transfer's progress, and behind it (net/tftp.c, net/net.c)."""


class Way:
    """One way of writing a board's boot medium."""

    overwrites: str
    """What will be overwritten, for people."""
    own_loader = True
    """Whether the board then starts by the image's own boot loader."""
    with_power = False
    """Whether the board itself writes; else its power is off meanwhile."""

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Make the medium equal to the image; what `writer.put` returns, as far as it is known."""
        raise NotImplementedError

    def ready(self) -> None:
        """See, before each power-on, that the board has its medium, and that it is whole."""


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


class Provider:
    """Labgrid's provider of a protocol, which puts files where the lab's server looks.

    Raises UsageError for a board file without one, with `what` the board does not get.
    """

    def __init__(self, target: Any, board: Board, protocol: str, what: str) -> None:
        self._protocol = protocol
        try:
            self._driver = target.get_driver(f"{protocol}ProviderDriver")
        except (NoDriverFoundError, KeyError):
            raise UsageError(
                f"{board.file_name} names no {protocol}Provider with its driver, which gives the board "
                f"{what} (docs/provisioning.md)"
            ) from None

    def stage(self, file: Path, name: str) -> str:
        """Where the board gets the file; raises LabError."""
        try:
            return str(self._driver.stage(str(file)))
        except (OSError, subprocess.SubprocessError, ExecutionError) as error:
            raise LabError(
                f"{name} cannot be put where the lab's {self._protocol} server looks ({self._protocol}"
                f"Provider's internal): {' '.join(str(error).split())[:160]}"
            ) from None


def trouble(console: Sequence[str]) -> str:
    """Why the last transfer in a console failed, and the remedy; "" if it did not fail."""
    said = "\n".join(console)
    _, begun, last = said.rpartition(_BEGUN)
    said = last if begun else said
    if refused := _REFUSED.search(said):
        return f"{refused[0].strip()}; are the files where the server looks?"
    if _NOTHING.search(said):
        stopped = "the server stopped in mid-transfer"
        what = stopped if "#" in last else "the server sends nothing"
        return f"{what}; check that it runs, and the cable"
    if begun and _ENDED not in last:
        return "the transfer did not end in time: the server or the network is slow"
    return ""
