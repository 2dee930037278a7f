"""Versions that must be built, and commits under bisection: git's own engine does the search."""

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from evmperf.model.errors import UsageError

BUILD_LOG = "build.log"


def commits(repository: Path, given: str) -> tuple[str, str]:
    """The good and the bad end of a range GOOD..BAD as full hashes; raises UsageError."""
    good, dots, bad = given.partition("..")
    if not dots or not good or not bad or bad.startswith("."):
        raise UsageError(f"git:{given}: write git:GOOD..BAD, a good and a bad commit")
    ends = [git(repository, "rev-parse", "--verify", f"{end}^{{commit}}") for end in (good, bad)]
    return ends[0], ends[1]


def build(command: str, version: str, folder: Path, repository: Path | None = None) -> bool:
    """Build a version with the user's shell command, which finds it in $VERSION, in a checkout of
    it; what it prints goes to build.log. False when it does not build.
    """
    with (folder / BUILD_LOG).open("ab") as log:
        log.write(f"\n=== {version}\n".encode())
        log.flush()
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=repository,
            env={**os.environ, "VERSION": version},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0


@contextlib.contextmanager
def put_back(repository: Path) -> Iterator[None]:
    """Check out afterwards what is checked out before: the branch, or the commit where none is."""
    branch = git(repository, "rev-parse", "--abbrev-ref", "HEAD")
    before = git(repository, "rev-parse", "HEAD") if branch == "HEAD" else branch
    try:
        yield
    finally:
        git(repository, "checkout", "--quiet", before)


def run(repository: Path, step: Sequence[str]) -> int:
    """Let git find the first bad commit by calling the step; its exit status.

    After Ctrl-C or SIGTERM the step has ended, too: it may have a board to switch off.
    """
    ended, inherited = os.pipe()
    with os.fdopen(ended) as steps:
        process = subprocess.Popen(
            ["git", "bisect", "run", *step],
            cwd=repository,
            stdin=subprocess.DEVNULL,
            pass_fds=[inherited],
            start_new_session=True,
        )
        os.close(inherited)
        try:
            return process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            steps.read()  # git ends at once, and the pipe when the last step does
            process.wait()
            raise


def first_bad(repository: Path) -> tuple[str, list[str]]:
    """The first bad commit ("" for none known), and those among which it is when some were skipped,
    read from git's own log.
    """
    first, possible = "", []
    for line in git(repository, "bisect", "log").splitlines():
        if line.startswith("# first bad commit: ["):
            first = line.partition("[")[2].partition("]")[0]
        elif line.startswith("# possible first bad commit: ["):
            possible.append(line.partition("[")[2].partition("]")[0])
    return first, possible


def title(repository: Path, commit: str) -> str:
    """A commit in a line for people."""
    return git(repository, "log", "-1", "--format=%h %s", commit)


def git(repository: Path, *words: str) -> str:
    """What git prints; raises UsageError with the first line of its complaint."""
    done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise UsageError(f"git {shlex.join(words)}: {lines[0]}")
    return done.stdout.strip()
