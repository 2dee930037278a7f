"""The commands `evmperf image` and `evmperf provision`: images, and putting them on boards."""

import argparse
import contextlib
import json
import sys
import time

from evmperf.commands.app import provisioning
from evmperf.commands.app.requests import Portion, Provision, ReadImage
from evmperf.commands.cli.arguments import command, requested
from evmperf.commands.cli.terminal import own
from evmperf.model.replies import Remark, Reply


@command("image")
def _image(options: argparse.Namespace) -> None:
    with contextlib.closing(ProgressBar()) as bar:
        read = provisioning.read(requested(ReadImage, options), bar.hear)
    if options.json:
        print(json.dumps(read.facts | {"warnings": read.warnings}, indent=1))
    else:
        print(f"{read.name}: {read.size >> 20} MiB, SHA-256 {read.sha256}")
        for word, value in read.lines:
            print(f"  {word:<17} {value}")
        for warning in read.warnings:
            print(f"note: {warning}")
    if read.fits:
        print(f"fit for {read.fits}", file=sys.stderr)


@command("provision")
def _provision(options: argparse.Namespace) -> None:
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
