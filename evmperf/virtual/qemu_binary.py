"""QEMU from a newer Debian suite, run through its own C library, so that no chroot is needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError
from evmperf.virtual import host_programs
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import BuildSteps


def build(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack the recipe's QEMU into `target`."""
    host_programs.unpack(recipe.data["qemu"], steps, target, "QEMU")


def describe(recipe: Recipe, part: Path) -> dict[str, Any]:
    """Return image.json's `qemu` for a QEMU unpacked at `part`; fails if it does not start."""
    root = part / "root"
    loader, libraries = host_programs.c_library(root)
    start = [str(loader), "--library-path", str(libraries)]
    command = [*start, str(root / "usr/bin" / recipe.data["qemu"]["program"])]
    command += ["-L", str(root / "usr/share/qemu")]
    env = {"QEMU_MODULE_DIR": str(libraries / "qemu")}
    done = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=False, env=env
    )
    version = re.search(r"version (\S+)", done.stdout)
    if done.returncode != 0 or not version:
        why = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise LabError(f"QEMU from {root} does not start: {why}; build it again with --force.")
    img = [*start, str(root / "usr/bin/qemu-img")]
    return {"command": command, "env": env, "img": img, "version": version[1]}


def fastest_aio(qemu: dict[str, Any], scratch: Path) -> str:
    """Return the fastest of QEMU's ways to read a file that this host allows.

    The SD controllers read 512 bytes at a time, so each read's overhead is what they cost:
    io_uring is twice as fast as threads, but containers often forbid it.
    """
    scratch.write_bytes(bytes(65536))
    command = [*qemu["img"], "bench", "-f", "raw", "-c", "1", "-i", "io_uring", str(scratch)]
    done = subprocess.run(command, capture_output=True, check=False, env=qemu["env"])
    scratch.unlink()
    return "io_uring" if done.returncode == 0 else "threads"
