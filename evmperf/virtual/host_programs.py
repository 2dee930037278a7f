"""Programs of another Debian suite on this host, run through their own C library: no chroot."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError
from evmperf.virtual.debian import DebianArchive
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import BuildSteps

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_WRAPPER = """\
#!/bin/sh
root=${{0%/*}}/../root
exec "$root/{loader}" --library-path "$root/{libraries}" "$root/{program}" "$@"
"""


def unpack(spec: dict[str, Any], steps: BuildSteps, target: Path, what: str) -> None:
    """Unpack a recipe's `suite`, `packages`, less `leave_out`, for this host into `target/root`.

    `target/packages.json` says which versions they are.
    """
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise LabError(f"{what} is fetched for x86-64 and arm64 hosts, and this one is {machine}.")
    with steps.step(f"{what} from Debian {spec['suite']}"):
        folder = target / "apt"
        archive = DebianArchive(steps, folder, spec["suite"], _ARCHITECTURES[machine])
        archive.update()
        packages = archive.resolve(spec["packages"], spec["leave_out"])
        archive.unpack(packages, target / "root")
        shutil.rmtree(folder)
        for waste in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"):
            shutil.rmtree(target / "root" / waste, ignore_errors=True)
    (target / "packages.json").write_text(json.dumps({p.name: p.version for p in packages}))


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
