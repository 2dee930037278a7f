"""QEMU and the tester's programs: of a newer Debian suite than this host's, run through their own C
library, so that no chroot is needed.
"""

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.recipe import Recipe
from evmperf_virtual.steps import BuildSteps, output

_START_S = 60.0
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_WRAPPER = """\
#!/bin/sh
root=${{0%/*}}/../root
exec "$root/{loader}" --library-path "$root/{libraries}" "$root/{program}" "$@"
"""


def unpack(spec: dict[str, Any], steps: BuildSteps, target: Path, what: str) -> None:
    """Unpack a recipe's packages for this host into `target/root`."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise LabError(f"{what} is fetched for x86-64 and arm64 hosts, and this one is {machine}.")
    architecture = _ARCHITECTURES[machine]
    with (
        steps.step(f"{what} from Debian {spec['suite']}"),
        DebianArchive(steps, target / "apt", spec["suite"], architecture) as archive,
    ):
        archive.unpack(archive.resolve(spec["packages"], spec["leave_out"]), target / "root")
        for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"):
            shutil.rmtree(target / "root" / waste, ignore_errors=True)


def c_library(root: Path) -> tuple[Path, Path]:
    """The dynamic loader and the folder of libraries below `root`; raises LabError."""
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = [path for path in root.glob("usr/lib/*-linux-gnu") if path.is_dir()]
    if not loaders or not libraries:
        raise LabError(f"{root} holds no C library; run `evmperf virtual build --force`.")
    return loaders[0], libraries[0]


def build_tester(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack the tester's programs into `target`, each with a script of its name in `bin/`."""
    spec = recipe.data["tester"]
    unpack(spec, steps, target, "The tester's programs")
    root = target / "root"
    loader, libraries = c_library(root)
    folder = target / "bin"
    folder.mkdir()
    for name in spec["programs"]:
        program = root / "usr/bin" / name
        if not program.exists():
            raise LabError(f"{spec['packages']} bring no {name}; correct the recipe's tester.")
        script = folder / name
        script.write_text(
            _WRAPPER.format(
                loader=loader.relative_to(root),
                libraries=libraries.relative_to(root),
                program=program.relative_to(root),
            )
        )
        script.chmod(0o755)


def build_qemu(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack the recipe's QEMU into `target`."""
    unpack(recipe.data["qemu"], steps, target, "QEMU")


def describe_qemu(recipe: Recipe, part: Path) -> dict[str, Any]:
    """Return image.json's `qemu` for a QEMU unpacked at `part`; fails if it does not start."""
    root = part / "root"
    loader, libraries = c_library(root)
    start = [str(loader), "--library-path", str(libraries)]
    command = [*start, str(root / "usr/bin" / recipe.data["qemu"]["program"])]
    command += ["-L", str(root / "usr/share/qemu")]
    env = {"QEMU_MODULE_DIR": str(libraries / "qemu")}
    try:
        version = re.search(r"version (\S+)", output([*command, "--version"], _START_S, env=env))
    except LabError as error:
        raise LabError(f"QEMU does not start: {error}; build it again with --force.") from None
    assert version
    img = [*start, str(root / "usr/bin/qemu-img")]
    return {"command": command, "env": env, "img": img, "version": version[1]}


def fastest_aio(qemu: dict[str, Any], scratch: Path) -> str:
    """QEMU's fastest way to read files here: io_uring, where a container allows it, else threads."""
    scratch.write_bytes(bytes(65536))
    command = [*qemu["img"], "bench", "-f", "raw", "-c", "1", "-i", "io_uring", str(scratch)]
    done = subprocess.run(command, capture_output=True, check=False, env=qemu["env"])
    scratch.unlink()
    return "io_uring" if done.returncode == 0 else "threads"
