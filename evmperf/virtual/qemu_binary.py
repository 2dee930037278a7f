"""QEMU from a newer Debian suite, run through its own C library, so that no chroot is needed."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from evmperf.errors import LabError
from evmperf.virtual.debian import Archive
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import Steps

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def build(recipe: Recipe, steps: Steps, target: Path) -> None:
    """Unpack the recipe's QEMU into `target`."""
    spec = recipe.data["qemu"]
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise LabError(f"QEMU is fetched for x86-64 and arm64 hosts, and this one is {machine}.")
    with steps.step(f"QEMU from Debian {spec['suite']}"):
        folder = target / "apt"
        archive = Archive(steps, folder, spec["suite"], _ARCHITECTURES[machine])
        archive.update()
        packages = archive.resolve(spec["packages"], spec["leave_out"])
        archive.unpack(packages, target / "root")
        shutil.rmtree(folder)
        for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"):
            shutil.rmtree(target / "root" / waste, ignore_errors=True)
    (target / "packages.json").write_text(json.dumps({p.name: p.version for p in packages}))


def describe(recipe: Recipe, part: Path) -> dict[str, Any]:
    """Return image.json's `qemu` for a QEMU unpacked at `part`; fails if it does not start."""
    root = part / "root"
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = [path for path in root.glob("usr/lib/*-linux-gnu") if path.is_dir()]
    if not loaders or not libraries:
        raise LabError(f"{root} holds no C library; run `evmperf virtual build --force`.")
    start = [str(loaders[0]), "--library-path", str(libraries[0])]
    command = [*start, str(root / "usr/bin" / recipe.data["qemu"]["program"])]
    command += ["-L", str(root / "usr/share/qemu")]
    env = {"QEMU_MODULE_DIR": str(libraries[0] / "qemu")}
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
