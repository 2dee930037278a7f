"""The commands `evmperf image` and `evmperf provision`: images, and putting them on boards."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time

import msgspec

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.boards import board as boards
from evmperf.cli.arguments import command
from evmperf.cli.terminal import own
from evmperf.doctor import target as targets
from evmperf.keeping.claim import Claim
from evmperf.keeping.wanted import wanted
from evmperf.lab.bench import LabgridBench
from evmperf.measure.signals import listening
from evmperf.model.errors import EvmperfError
from evmperf.provision import identity, ways
from evmperf.provision.cache import open_image
from evmperf.provision.installation import Installation
from evmperf.provision.remote import Host


@command("image")
def _about(options: argparse.Namespace) -> None:
    board = boards.load(boards.find(options.board)) if options.board else None
    with ProgressBar() as bar:
        image = open_image(options.image, board, bar.progress)
        if options.write:
            done = ways.write(Host(), options.write, image, bar.progress)
            bar.line(f"{options.write}: {done['written'] >> 10} KiB written, all of it read back")
    if options.json:
        about = image.facts() | {"content_bytes": image.hashes.size}
        about |= msgspec.structs.asdict(image.identity) | {"warnings": image.warnings}
        print(json.dumps(about, indent=1))
    else:
        print(f"{image.name}: {image.hashes.size >> 20} MiB, SHA-256 {image.hashes.file}")
        for word, value in identity.lines(image.identity):
            print(f"  {word:<17} {value}")
        for warning in image.warnings:
            print(f"note: {warning}")
    if board:
        print(f"fit for {board.name} ({board.file_name})", file=sys.stderr)


@command("provision")
def _provision(options: argparse.Namespace) -> None:
    board = benchmarks.board(boards.find(options.board))
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(ProgressBar())
        claim = Claim.take(wanted(board.file, options.coordinator), "provision", tell=bar.line)
        stack.callback(claim.release)
        opened = targets.opened(board, claim, bar.line, keep_lab=options.keep_on)
        target = stack.enter_context(opened)
        bench = LabgridBench(target, board, check=claim.check)
        stack.callback(bench.close)
        claim.on_lost = bench.lose
        if not options.keep_on:
            stack.push(lambda kind, *_: _off(bench, claim, quietly=kind is not None))
        work = Installation(target, board, bench, tell=bar.line, progress=bar.progress)
        print(f"{board.name}: overwrites {work.describe()}", flush=True)
        outcome = work.install(options.image, force=options.force)
    runs = outcome.runs
    done = "was already running and is unchanged" if outcome.left_alone else "is installed and runs"
    print(f"{outcome.image.name} {done}: {runs.kernel} {runs.kernel_version}, {runs.uboot}")


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

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def line(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        print(text, flush=True)

    def progress(self, what: str, done: int, whole: int) -> None:
        """Show how much is done, ten times a second at most."""
        now = time.monotonic()
        if not sys.stderr.isatty() or (now - self._last < 0.1 and done != whole):
            return
        self._last, self._shown = now, True
        share = done / whole if whole else 0.0
        bar = "#" * round(30 * share)
        print(f"\r{what:<7} [{bar:<30}] {share:4.0%} {done >> 20} MiB", end="", file=own(sys.stderr))

    def _clear(self) -> None:
        if self._shown:
            print("\r" + " " * 70 + "\r", end="", file=own(sys.stderr), flush=True)
            self._shown = False
