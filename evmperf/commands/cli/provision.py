"""The commands `evmperf image show` and `evmperf image install`: images, and putting them on boards."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time

import msgspec

from evmperf.boards import board as boards
from evmperf.commands.cli.arguments import BOARD, BOARD_OPTION, COORDINATOR, JSON, argument, command, group
from evmperf.commands.cli.terminal import own
from evmperf.lab import target as targets
from evmperf.lab.bench import LabgridBench
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import placement
from evmperf.lab.provision import writer
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.identity import Identity
from evmperf.lab.provision.installation import Installation, Installed
from evmperf.measure import boardfile
from evmperf.measure.signals import listening
from evmperf.model.errors import EvmperfError

group("image", "Images: what one holds, and putting one on a board (docs/provisioning.md).")


@command(
    "image show",
    BOARD_OPTION,
    JSON,
    argument("image", metavar="IMAGE"),
    argument(
        "--write",
        default="",
        metavar="DEVICE",
        help="write the image to this medium of this host (a card in a reader), and read it back",
    ),
)
def _image(options: argparse.Namespace) -> None:
    """Shows the release, machine, kernel, U-Boot and disk of an image, without mounting it and without
    root. IMAGE is a file (.wic, also .xz, .zst, .gz, .bz2) or a URL.
    """
    board = boards.load(boards.find(options.board)) if options.board else None
    with contextlib.closing(ProgressBar()) as bar:
        image = open_image(options.image, board, bar.progress)
        if options.write:
            done = writer.write(options.write, image, bar.progress)
            bar.tell(f"{options.write}: {done['written'] >> 10} KiB written, all of it read back")
    size = image.hashes.size
    if options.json:
        facts = image.facts() | {"content_bytes": size} | msgspec.structs.asdict(image.identity)
        print(json.dumps(facts, indent=1))
    else:
        print(f"{image.name}: {size >> 20} MiB, SHA-256 {image.hashes.file}")
        for word, value in _lines(image.identity):
            print(f"  {word:<17} {value}")
    if board:
        print(f"fit for {board.name} ({board.file_name})", file=sys.stderr)


def _lines(says: Identity) -> list[tuple[str, str]]:
    """What an image says of itself, as pairs of a word and its value."""
    words = {
        "release": says.release,
        "machine": says.machine,
        "operating system": says.name,
        "kernel": f"{says.kernel} {says.kernel_version}".strip(),
        "U-Boot": says.uboot + (f" ({says.loader})" if says.loader else ""),
        "chip": says.silicon,
        "disk": f"{says.label} {says.disk}",
        "root": f"PARTUUID={says.root}" if says.root else "",
    }
    return [(word, value) for word, value in words.items() if value]


@command(
    "image install",
    BOARD,
    COORDINATOR,
    argument("image", metavar="IMAGE"),
    argument("--force", action="store_true", help="write the image even if the board runs it"),
    argument("--keep-on", action="store_true", help="leave the board switched on"),
)
def _provision(options: argparse.Namespace) -> None:
    """Writes an image to a board's boot medium, reads all of it back, boots it, and verifies the running
    system. BOARD is a board file, as for pytest --lg-env. A board that already runs this image is not
    written. `pytest --lg-env BOARD --image IMAGE` does the same before it measures.
    """
    with contextlib.closing(ProgressBar()) as bar:
        done = _installed(options, bar)
    word = "was already running and is unchanged" if done.left_alone else "is installed and runs"
    runs = done.runs
    print(f"{done.image.name} {word}: {runs.kernel} {runs.kernel_version}, {runs.uboot}")


def _installed(options: argparse.Namespace, bar: ProgressBar) -> Installed:
    """Put the image on the board; it is off afterwards unless it is to stay on, after an error too."""
    board = boardfile.named(options.board)
    with contextlib.ExitStack() as stack:
        claim = Claim.take(placement(board.file, options.coordinator), "provision", tell=bar.tell)
        stack.callback(claim.release)
        target = stack.enter_context(targets.opened(board, claim, bar.tell, keep_lab=options.keep_on))
        bench = LabgridBench(target, board, check=claim.check)
        stack.callback(bench.close)
        claim.on_lost = bench.lose
        if not options.keep_on:
            stack.push(lambda kind, *_: _off(bench, claim, quietly=kind is not None))
        work = Installation(target, board, bench, tell=bar.tell, progress=bar.progress)
        bar.tell(f"{board.name}: overwrites {work.overwrites}")
        return work.install(options.image, force=options.force)


def _off(bench: LabgridBench, claim: Claim, *, quietly: bool) -> None:
    """Switch a board off that is still ours, whatever signal comes."""
    with contextlib.suppress(*[EvmperfError] if quietly else []), listening(lambda *_: None):
        if not claim.lost:
            bench.off()


class ProgressBar:
    """A line that tells how far reading and writing are, on a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = False
        self._last = 0.0

    def tell(self, sentence: str) -> None:
        """Show a line that stays."""
        self.close()
        print(sentence, flush=True)

    def progress(self, what: str, done: int, whole: int) -> None:
        """Show how much is done, ten times a second at most."""
        now = time.monotonic()
        if not sys.stderr.isatty() or (now - self._last < 0.1 and done != whole):
            return
        self._last, self._shown = now, True
        share = done / whole if whole else 0.0
        bar = "#" * round(30 * share)
        print(f"\r{what:<7} [{bar:<30}] {share:4.0%} {done >> 20} MiB", end="", file=own(sys.stderr))

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r" + " " * 70 + "\r", end="", file=own(sys.stderr), flush=True)
            self._shown = False
