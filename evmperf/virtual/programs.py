"""Benchmark programs that no package has: cross-compiled into static binaries for the board."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from evmperf.virtual.debian import DebianArchive
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import BuildSteps


def inputs(recipe: Recipe) -> list[str]:
    """Return the files of the folder of programs: if one changes, all are compiled anew."""
    folder = recipe.data["programs"]["folder"]
    return [f"{folder}/{name}" for name in recipe.files(folder)]


def build(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Compile the recipe's programs into `target`.

    A source file is looked for in the recipe's folder of programs first, then in the Debian source
    package that the recipe names.
    """
    spec = recipe.data["programs"]
    own, foreign = recipe.files(spec["folder"]), target / "source"
    with (
        steps.step(f"Source of {spec['source']} from Debian {spec['suite']}"),
        DebianArchive.opened(steps, target / "apt", spec["suite"], sources=True) as archive,
    ):
        archive.unpack_source(spec["source"], foreign, "--wildcards", spec["source_files"])
    with steps.step("Benchmark programs compiled"):
        for name, sources in spec["compile"].items():
            files = [own.get(file, foreign / file) for file in sources]
            folders = dict.fromkeys([*(path.parent for path in own.values()), foreign])
            headers = [word for folder in folders for word in ("-I", folder)]
            command: list[str | Path] = [spec["compiler"], *spec["flags"], *headers, *files]
            # The same sources give the same program, wherever they were compiled.
            command += [f"-ffile-prefix-map={target}=.", "-o", target / name, *spec["libraries"]]
            steps.run(command, f"Compiling {name}", "programs")
    shutil.rmtree(foreign)


def install(part: Path, root: Path) -> None:
    """Put the compiled programs into a board's userland."""
    for program in part.iterdir():
        place = root / "usr/bin" / program.name
        place.unlink(missing_ok=True)
        os.link(program, place)
