"""Running the host's programs for a build: with a log, a sentence on failure, and times told."""

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evmperf.measure.hostload import slowness
from evmperf.model.errors import LabError

Progress = Callable[[str], None]


class BuildSteps:
    """The steps of one build: tells each with its duration, keeps programs' output in a log."""

    def __init__(self, log_dir: Path, progress: Progress) -> None:
        log_dir.mkdir(parents=True, exist_ok=True)
        self.log_dir = log_dir
        self._progress = progress
        self._lock = threading.Lock()

    def tell(self, text: str) -> None:
        """Tell one line; parts that are built at the same time take turns."""
        with self._lock:
            self._progress(text)

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Tell what was done and how long it took, in seconds, when it is done."""
        start = time.monotonic()
        yield
        self.tell(f"{text}: {time.monotonic() - start:.1f} s")

    def run(
        self,
        command: Sequence[str | Path],
        what: str,
        log: str,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> str:
        """Run a program, append its output to the log `log`, and return its standard output."""
        file = self.log_dir / f"{log}.log"
        with file.open("a") as output:
            print("$", *command, file=output, flush=True)
            done = _run(command, env, stdin, stderr=output, cwd=cwd)
            output.write(done.stdout)
        if done.returncode != 0:
            raise LabError(
                f"{what} failed: {Path(command[0]).name} ended with {done.returncode} "
                f"({_last_line(file)}); the log is {file}, and `evmperf virtual build` tries again."
            )
        return done.stdout


def _last_line(file: Path) -> str:
    lines = [line.strip() for line in file.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if re.match(r"E: |.*\berror\b", line, re.IGNORECASE)]
    return (errors or [line for line in lines if line] or ["no output"])[-1][:200]


def check_host(list_file: Path) -> None:
    """Raise LabError naming the packages of a list for `scripts/host-packages` that this host lacks."""
    script = Path(__file__).parents[2] / "scripts/host-packages"
    if missing := _run([script, "--missing", list_file], None, "").stdout.split():
        raise LabError(
            "This host lacks programs that build the virtual board; "
            f"run `apt-get install --no-install-recommends {' '.join(missing)}`."
        )


def _run(
    command: Sequence[str | Path], env: Mapping[str, str] | None, stdin: str, **more: Any
) -> subprocess.CompletedProcess[str]:
    # C locale: the builder reads apt's and mke2fs's words. Users often lack sbin in PATH.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    env = {**os.environ, "LC_ALL": "C", "PATH": path, **(env or {})}
    return subprocess.run(
        command,
        env=env,
        input=stdin,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
        **more,
    )


def output(
    command: Sequence[str | Path], timeout_s: float, *, stdin: str = "", env: Mapping[str, str] | None = None
) -> str:
    """The output of a host program, run without a log; raises LabError with its last line. `timeout_s` are
    those of an idle host.
    """
    shown = " ".join(map(str, command))[:200]
    try:
        done = _run(command, env, stdin, stderr=subprocess.PIPE, timeout=timeout_s * slowness())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"`{shown}` failed: {error}") from None
    if done.returncode:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise LabError(f"`{shown}` failed: {reason}")
    return done.stdout


def make_ext4(
    steps: BuildSteps, disk: Path, root: Path, *, start_mib: int, mib: int, label: str, uuid: str
) -> None:
    """Make the file system of a partition of a disk file, filled with what is below `root`."""
    command: list[str | Path] = ["mke2fs", "-F", "-t", "ext4", "-d", root, "-L", label]
    command += ["-U", uuid, "-m", "0", "-O", "^metadata_csum,^64bit,^orphan_file"]
    options = f"offset={start_mib << 20},hash_seed={uuid},root_owner=0:0"
    command += ["-E", options, disk, f"{mib}M"]
    if os.geteuid() != 0:
        command = ["unshare", "--map-root-user", *command]
    # A fixed time makes the same files the same disk.
    env = {"E2FSPROGS_FAKE_TIME": "1735689600"}
    steps.run(command, f"Making the file system {label}", "image", env=env)
