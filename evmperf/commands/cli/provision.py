"""The commands `evmperf image show` and `evmperf image install`: images, and putting them on boards."""

import argparse
import contextlib
import json
import sys
import time

from evmperf.commands.app import provisioning
from evmperf.commands.app.requests import Portion, Provision, ReadImage
from evmperf.commands.cli.arguments import (
    BOARD,
    BOARD_OPTION,
    COORDINATOR,
    JSON,
    argument,
    command,
    group,
    requested,
)
from evmperf.commands.cli.terminal import own
from evmperf.model.replies import Remark, Reply

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
    root. IMAGE is a file (.wic, also .xz, .zst, .gz, .bz2), a URL, or, with --board, a
    release of the list that EVMPERF_RELEASES names.
    """
    with contextlib.closing(ProgressBar()) as bar:
        read = provisioning.read(requested(ReadImage, options), bar.hear)
    if options.json:
        print(json.dumps(read.facts, indent=1))
    else:
        print(f"{read.name}: {read.size >> 20} MiB, SHA-256 {read.sha256}")
        for word, value in read.lines:
            print(f"  {word:<17} {value}")
    if read.fits:
        print(f"fit for {read.fits}", file=sys.stderr)


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
        done = provisioning.provision(requested(Provision, options), bar.hear)
    word = "was already running and is unchanged" if done.left_alone else "is installed and runs"
    print(f"{done.image} {word}: {done.kernel}, {done.uboot}")


class ProgressBar:
    """A line that tells how far reading and writing are, on a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = False
        self._last = 0.0

    def hear(self, reply: Reply) -> None:
        """Show the news of a request: a line that stays, or how much is done."""
        if isinstance(reply, Portion):
            self.progress(reply.what, reply.done, reply.whole)
        elif isinstance(reply, Remark):
            self.close()
            print(reply.sentence, flush=True)

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
