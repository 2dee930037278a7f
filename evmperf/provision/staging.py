"""How images and files get to a board: what each way has in common, and the lab's TFTP and HTTP servers."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labgrid.driver.exception import ExecutionError
from labgrid.exceptions import NoDriverFoundError

from evmperf.boards.board import Board
from evmperf.model.errors import LabError, UsageError
from evmperf.provision.image import DiskImage
from evmperf.provision.writer import Progress

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
