"""The commands `evmperf image show` and `evmperf image install`: images, and putting them on boards."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

import msgspec

from evmperf.boards import board as boards
from evmperf.commands.cli.arguments import BOARD, BOARD_OPTION, COORDINATOR, JSON, argument, command, group
from evmperf.lab import target as targets
from evmperf.lab.bench import LabgridBench
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import placement
from evmperf.lab.provision import writer
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.lab.provision.installation import Installation, Installed
from evmperf.measure import boardfile
from evmperf.measure.runs.spool import new_run_id
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
    """Shows the release, machine, kernel, U-Boot and root of an image, without mounting it and without
    root. IMAGE is a file (.wic, also .xz, .zst, .gz, .bz2) or a URL.
    """
    board = boards.load(boards.find(options.board)) if options.board else None
    image = open_image(options.image, board, lambda line: print(line, file=sys.stderr))
    if options.write:
        writer.write(options.write, image)
        print(f"{options.write}: {image.size >> 10} KiB written, all of it read back")
    if options.json:
        facts = image.facts() | {"content_bytes": image.size} | msgspec.structs.asdict(image.identity)
        print(json.dumps(facts, indent=1))
    else:
        print(f"{image.name}: {image.size >> 20} MiB, SHA-256 {image.sha256}")
        for word, value in _lines(image.identity):
            print(f"  {word:<17} {value}")
    if board:
        print(f"fit for {board.name} ({board.file_name})", file=sys.stderr)


def _lines(says: SystemIdentity) -> list[tuple[str, str]]:
    """What an image says of itself, as pairs of a word and its value."""
    words = {
        "release": says.release,
        "machine": says.machine,
        "operating system": says.name,
        "kernel": f"{says.kernel} {says.kernel_version}".strip(),
        "U-Boot": says.uboot,
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
    done = _installed(options)
    word = "was already running and is unchanged" if done.left_alone else "is installed and runs"
    runs = done.runs
    print(f"{done.image.name} {word}: {runs.kernel} {runs.kernel_version}, {runs.uboot}")


def _installed(options: argparse.Namespace) -> Installed:
    """Put the image on the board; it is off afterwards unless it is to stay on, after an error too."""
    board = boardfile.named(options.board)
    with contextlib.ExitStack() as stack:
        wanted = placement(board.file, options.coordinator)
        claim = Claim.take(wanted, new_run_id("provision"), tell=_tell)
        stack.callback(claim.close)
        target = stack.enter_context(targets.opened(board, claim, _tell, keep_lab=options.keep_on))
        bench = LabgridBench(target, board, check=claim.check)
        stack.callback(bench.close)
        claim.on_lost = bench.lose
        if not options.keep_on:
            stack.push(lambda kind, *_: _off(bench, claim, quietly=kind is not None))
        work = Installation(target, board, bench, tell=_tell)
        _tell(f"{board.name}: overwrites {work.overwrites}")
        return work.install(options.image, force=options.force)


def _off(bench: LabgridBench, claim: Claim, *, quietly: bool) -> None:
    """Switch a board off that is still ours, whatever signal comes."""
    with contextlib.suppress(*[EvmperfError] if quietly else []), listening(lambda *_: None):
        if not claim.lost:
            bench.off()


def _tell(sentence: str) -> None:
    """Show a step as it comes, on a pipe too."""
    print(sentence, flush=True)
