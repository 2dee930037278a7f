"""An alarm checked again on a virtual EVM, from end to end.

Some nights with one release, then one with a release that limits writes to the eMMC: `evmperf check`
must call them worse, and `--confirm` put both releases on the board in turn, confirm it and name
bisection as the next step. With --without, the last release is as fast as the others and the host is
overloaded in that night only: the alarm must be taken back. Prints the note for a merge request; ends
with 0 if that is what came.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from evmperf.benchmarks import wording
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from selftests.instruments import command
from selftests.instruments.bisections import EMMC_WRITES, LIMITED, VARIANT, releases
from selftests.instruments.virtuallab import board_file

_TRIES = 3


@dataclass(frozen=True)
class Outcome:
    """What `check` of a figure ended with, and its note for a merge request."""

    figure: str
    status: int
    note: str
    minutes: float

    @property
    def dismissed(self) -> bool:
        """Whether an A/B took the figure's alarm back; that a control figure changed is the board's."""
        return self._row not in self.note and " not confirmed" in self.note

    @property
    def _row(self) -> str:
        return f"| **worse** | {wording.figure(Key(*self.figure.split('/')))} |"

    @property
    def confirmed(self) -> bool:
        """Whether the figure is worse, and an A/B says so, too."""
        lines = [line for line in self.note.splitlines() if line.startswith(self._row)]
        told = "| confirmed by an A/B" in "".join(lines) and "next: evmperf bisect" in self.note
        return self.status == ExitStatus.FAILED and told


@contextmanager
def _overloaded() -> Iterator[None]:
    """The host has four times more to do than it has processors."""
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def alarm(folder: Path, nights: int, *, change: bool = True) -> Outcome:
    """Measure the nights on a virtual EVM, check the last with --confirm."""
    images = releases(folder, 2, 1 if change else 2, LIMITED)
    with board_file(VARIANT, folder) as board:
        odd = nullcontext() if change else _overloaded()
        return alarm_of(folder, board, images, EMMC_WRITES, nights=nights, odd=odd)


def alarm_of(
    folder: Path,
    board: Path,
    images: Sequence[Path],
    figure: str,
    *,
    nights: int,
    odd: AbstractContextManager[None],
) -> Outcome:
    """The same on some board: nights with the first of two images, one with the second, within `odd`."""
    began = time.monotonic()
    results, note = folder / "results", folder / "note.md"
    for _ in range(nights):
        _measure(board, images[0], results, figure)
    with odd:
        _measure(board, images[1], results, figure)
    check = ["check", "last", "--against", f"last:{nights}", "--confirm=30m"]
    files = [f"--results={results}", f"--board={board}", f"--markdown={note}"]
    done = subprocess.run([sys.executable, "-m", "evmperf", *check, *files], check=False)
    text = note.read_text() if note.exists() else ""
    return Outcome(figure, done.returncode, text, (time.monotonic() - began) / 60)


def _measure(board: Path, image: Path, results: Path, figure: str) -> None:
    """Measure a night; a boot that the load of this machine made fail is tried again."""
    benchmark, case, _ = figure.split("/")
    words = [
        f"--lg-env={board}",
        f"--image={image}",
        f"-k={benchmark}-{case}",
        f"--results={results}",
        "--run-kind=nightly",
        "--boots=1",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    if not any(subprocess.run(command, check=False).returncode == ExitStatus.OK for _ in range(_TRIES)):
        raise SystemExit(f"{image.name} did not boot in {_TRIES} tries")


def main(words: Sequence[str] | None = None) -> int:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--nights", type=int, default=8)
    parser.add_argument("--without", action="store_true", help="without a change: the host is at fault")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave everything there")
    options = parser.parse_args(words)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        outcome = alarm(folder.resolve(), options.nights, change=not options.without)
    print(outcome.note)
    print(f"{options.nights + 1} nights and the A/B took {outcome.minutes:.0f} min")
    return 0 if (outcome.dismissed if options.without else outcome.confirmed) else 1


if __name__ == "__main__":
    sys.exit(main())
