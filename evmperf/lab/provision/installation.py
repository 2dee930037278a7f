"""Puts an image on a board, boots it, and checks that it is the image that runs."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision import cache, running
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.network import NetworkWay
from evmperf.lab.provision.record import Book
from evmperf.lab.provision.running import Running
from evmperf.lab.provision.ways import CardWay, CommandWay, Way
from evmperf.measure.bench import Shell
from evmperf.model.errors import BoardError, EvmperfError, Kind, LabError, UsageError

Tell = Callable[[str], None]


class NoWay(UsageError):
    """The board file names no way to put an image on the board. That is allowed."""


def choose(target: object, board: Board, bench: LabgridBench) -> Way:
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


@dataclass
class Installed:
    """Outcome of an installation: the image, whether it had to be written, what runs now."""

    image: DiskImage
    facts: dict[str, object]
    left_alone: bool
    runs: Running


class Installation:
    """One board and its images; `tell` gets each step as a line. Raises EvmperfError."""

    def __init__(
        self, target: object, board: Board, bench: LabgridBench, *, tell: Tell = lambda _line: None
    ) -> None:
        self.board, self.bench = board, bench
        self._tell = tell
        self._way: Way = choose(target, board, bench)
        self.overwrites = self._way.overwrites
        """What `install` will overwrite, for people."""
        self.book = Book(board)
        bench.before_power_on(self._before_power_on)
        self._writing = False

    def install(self, given: str, *, force: bool = False) -> Installed:
        """Put the image on the board unless it is there, boot it, identify it. Raises LabError for another
        system, BoardError for a failed boot; the board is off then.
        """
        image = cache.open_image(given, self.board, self._tell)
        if not force and (runs := self._already(image)):
            return self._identified(image, runs, left_alone=True)
        try:
            self._put(image)
            return self._identified(image, self._checked(image), left_alone=False)
        except EvmperfError as error:
            # Nothing must be measured on what is there now.
            with contextlib.suppress(EvmperfError):
                self.bench.off()
            if error.kind is Kind.BOARD:
                raise BoardError(
                    f"{image.name} does not boot: {error}; give the board an image that does with --image"
                ) from error
            raise

    def _already(self, image: DiskImage) -> Running | None:
        """What the board runs if it is this image already, by record and by inspection; else None.

        This proves: this host wrote the image, read it back and saw it boot; the medium is the same;
        the running system identifies itself as the image; its root was mounted no more often than this
        host has switched the board on since. Changes of files on the running system are not seen.
        """
        if not self.book.read().may_hold(image.content_sha256):
            return None
        try:
            runs = self._checked(image)
            # Read anew: this start was counted, too.
            reason = self.book.read().why_other(runs.medium, runs.mounts)
        except EvmperfError as error:
            reason = str(error)
        if not reason:
            return runs
        self._tell(f"{image.name} should be on the board, but {reason}")
        return None

    def _put(self, image: DiskImage) -> None:
        self._tell(f"writing {image.name} ({image.size >> 20} MiB) to {self.overwrites}")
        self.bench.abandon()
        if not self._way.with_power:
            self.bench.off()
        self._writing = True
        try:
            self._way.put(image, lambda: self.book.begins(image.name, image.content_sha256))
        finally:
            self._writing = False
        self.book.written()

    def _before_power_on(self) -> None:
        if self._writing:
            # The board writes its medium itself, started from elsewhere.
            return
        try:
            state = self.book.read()
            if state.writing:
                raise LabError(
                    f"the write of {state.name} to the board's medium was "
                    f"interrupted: it is not booted; give the board an image with --image"
                )
            self._way.ready()
            self.book.starts()
        except EvmperfError as error:
            # Another power cycle would not make it better.
            error.permanent = True  # type: ignore[attr-defined]
            raise

    def _checked(self, image: DiskImage) -> Running:
        """What the board runs; raises LabError if it is not what the image says of itself."""
        shell: Shell = self.bench.shell()
        runs = running.ask(shell, self.bench.console_lines())
        running.check(image.identity, runs, own_loader=self._way.own_loader)
        return runs

    def _identified(self, image: DiskImage, runs: Running, *, left_alone: bool) -> Installed:
        self.book.booted(runs.medium, runs.mounts)
        self._tell(f"the board runs {image.name}: {runs.release or runs.kernel_version}")
        facts = {
            **image.facts(),
            **{name: getattr(runs, name) for name in ("kernel_version", "uboot", "root")},
            "left_alone": left_alone,
        }
        return Installed(image, facts, left_alone, runs)


def guard(target: Any, board: Board, bench: LabgridBench) -> None:
    """Check the medium of a board before each power-on, if it has a way for images. Raises UsageError or
    LabError for a wrong description: an unchecked medium is not booted.
    """
    with contextlib.suppress(NoWay):
        Installation(target, board, bench)
