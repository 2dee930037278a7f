"""Bisections on a virtual EVM, with a change that is known, from end to end:

    commits   16 commits, by `git bisect run`
    boot      8 images provisioned, one init step more
    emmc      the same, eMMC writes with a limit

Each says what was measured and ends with 0 if the right version was named. `--versions` makes the
series shorter, `--bad` says from which version on it is slow (default: a random one).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from evmperf_virtual import release

from evmperf.judge import search
from selftests.instruments import command
from selftests.instruments.virtuallab import board_file

BOOT_TIME = "boot_time_mmcsd/default_rootfs/boot_time"
EMMC_WRITES = "emmc_raw_fio_1g/1m/write_throughput"

HARMLESS = (
    "audit=0",
    "nosoftlockup",
    "printk.time=1",
    "rcu_nocbs=1",
    "consoleblank=0",
    "nowatchdog",
    "threadirqs",
)
"""Kernel arguments that cost no boot time worth speaking of."""


@dataclass(frozen=True)
class Words:
    """What commits add to a board's variation, one each."""

    harmless: Sequence[str]
    slow: str
    dead: str
    """What keeps it from booting; it stays for one commit."""


KERNEL = Words(
    [f"args:{word}" for word in HARMLESS],
    # Drivers that somebody left out: init waits for their disks, for ten seconds each.
    "args:module_blacklist=nvme,ufshcd_pci",
    "args:init=/nowhere",
)

RCS = "etc/init.d/rcS"
SLOW_INIT = "sleep 15 # waits for a network that nobody needs\n"
LIMITED = """
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +io >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
echo "$(cat /sys/block/mmcblk0/dev) wbps=800000" >/sys/fs/cgroup/limited/io.max
echo 1 >/sys/fs/cgroup/limited/cgroup.procs # and all that it starts
"""
VARIANT = "virtual-sd"


@dataclass(frozen=True)
class Outcome:
    """What a bisection said, of the version that is the right answer."""

    right: str
    said: str
    state: search.Bisection
    minutes: float

    @property
    def found(self) -> bool:
        """Whether the right version was named, with as much certainty as it claims."""
        return self.right in self.said and "not closer" not in self.said

    def table(self) -> str:
        """The steps, as Markdown."""
        lines = ["| version | answer | like bad | blocks |", "|---|---|---|---|"]
        lines += [
            f"| {_short(step.version)} | {step.answer} | {step.bad:.1%} | {step.blocks} |"
            for step in self.state.steps
        ]
        said = f"{self.said.rstrip('.')}; it is {self.right}."
        took = (
            f"{len(self.state.pairs())} blocks of good and bad, {len(self.state.rounds)} "
            f"rounds, {self.minutes:.0f} min in all."
        )
        return "\n".join([*lines, "", said, took])


def _short(version: str) -> str:
    """An image's name, or the beginning of a commit's hash."""
    return Path(version).name.removesuffix(".wic.zst") if "/" in version else version[:12]


def commits(folder: Path, versions: int, bad: int) -> Outcome:
    """Bisect a repository in which commits add a kernel argument each; one slows the boot, and two
    (in a series of eight and more; else one) do not boot.
    """
    with board_file("virtual", folder) as board:
        return commits_of(folder, board, KERNEL, versions, bad)


def commits_of(folder: Path, board: Path, words: Words, versions: int, bad: int) -> Outcome:
    """The same on some board, with commits of other words."""
    repository, made = folder / "repository", folder / "made"
    made.mkdir()
    middle = 2 if versions == 4 else (versions - 1) // 2  # Git asks for that one first.
    dead = {middle, versions // 4 if versions >= 8 else middle} - {bad}
    _make_repository(repository, words, versions, bad, dead)
    return _bisect(
        folder,
        f"change {bad}",
        board,
        "--of",
        f"git:v0..v{versions - 1}",
        "--repository",
        repository,
        "--build",
        f"cp variation.yaml {made}/$VERSION.yaml",
        "--what",
        f"{made}/{{}}.yaml",
    )


def _make_repository(folder: Path, words: Words, versions: int, bad: int, dead: set[int]) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)

    folder.mkdir()
    git("init", "-q", "-b", "main")
    git("config", "user.email", "somebody@board.example")
    git("config", "user.name", "Somebody")
    there: list[str] = []
    for number in range(versions):
        if number == bad:
            there.append(words.slow)
        elif number:
            there.append(words.harmless[number % len(words.harmless)])
        now = [*there, words.dead] if number in dead else there
        text = json.dumps(list(dict.fromkeys(now)))
        (folder / "variation.yaml").write_text(f"# change {number}\n{text}\n")
        git("add", "variation.yaml")
        git("commit", "-qm", f"change {number}")
        git("tag", f"v{number}")


def images(folder: Path, versions: int, bad: int, metric: str, slow: str) -> Outcome:
    """Bisect releases that are put on the board one after the other; from one on, its init has a
    line more.
    """
    files = releases(folder, versions, bad, slow)
    with board_file(VARIANT, folder) as board:
        return images_of(folder, board, files, bad, metric)


def images_of(folder: Path, board: Path, files: Sequence[Path], bad: int, metric: str = BOOT_TIME) -> Outcome:
    """The same on some board, with images that are there."""
    listed = folder / "releases.txt"
    listed.write_text("".join(f"{file}\n" for file in files))
    what = ("--of", listed, "--what", "image:{}")
    return _bisect(folder, files[bad].name, board, *what, metric=metric)


def releases(folder: Path, versions: int, bad: int, slow: str) -> list[Path]:
    """Make so many releases, whose init has a line more from one on; gives their files."""

    def change(root: Path) -> None:
        file = root / RCS
        text, mode = file.read_text(), file.stat().st_mode
        file.unlink()
        file.write_text(text + slow)
        file.chmod(mode)

    files = [folder / f"{release.name(VARIANT, n + 1)}.wic.zst" for n in range(versions)]
    for number, file in enumerate(files):
        extra = {"change": change} if number >= bad else {}
        release.build(VARIANT, number + 1, file, print, **extra)
    return files


def _bisect(folder: Path, right: str, board: Path, *what: str | Path, metric: str = BOOT_TIME) -> Outcome:
    began = time.monotonic()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "evmperf",
            "bisect",
            board,
            *what,
            "--metric",
            metric,
            "--boots=1",
            f"--results={folder / 'results'}",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    (state,) = (folder / "results").glob("*/search.json")
    said = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
    minutes = (time.monotonic() - began) / 60
    return Outcome(right, said, search.Bisection.load(state.parent), minutes)


KINDS: dict[str, tuple[int, Callable[[Path, int, int], Outcome]]] = {
    "commits": (16, commits),
    "boot": (8, lambda folder, n, bad: images(folder, n, bad, BOOT_TIME, SLOW_INIT)),
    "emmc": (8, lambda folder, n, bad: images(folder, n, bad, EMMC_WRITES, LIMITED)),
}


def main(words: Sequence[str] | None = None) -> int:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--versions", type=int)
    parser.add_argument("--bad", type=int, metavar="NUMBER")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave everything there")
    options = parser.parse_args(words)
    usual, bisect = KINDS[options.kind]
    versions = options.versions or usual
    bad = options.bad or random.randrange(1, versions)
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        outcome = bisect(folder.resolve(), versions, bad)
    print(outcome.table())
    return 0 if outcome.found else 1


if __name__ == "__main__":
    sys.exit(main())
