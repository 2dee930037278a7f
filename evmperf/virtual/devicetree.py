"""A device tree of QEMU's own making, with a recipe's additions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import BuildSteps

FILE = "board.dtb"


def build(recipe: Recipe, qemu: dict[str, Any], steps: BuildSteps, folder: Path) -> None:
    """Make `folder`/board.dtb: what QEMU has for the recipe's machine, then the recipe's source.

    `qemu` is image.json's. The source is dtc's; a node that QEMU has is changed by naming it again.
    """
    words = recipe.data["arguments"]
    machine, memory = (words[words.index(option) + 1] for option in ("-M", "-m"))
    dumped, source = folder / "dumped.dtb", folder / "board.dts"
    command = [*qemu["command"], "-M", f"{machine},dumpdtb={dumped}", "-m", memory]
    with steps.step("Device tree"):
        steps.run([*command, "-display", "none"], "Dumping QEMU's device tree", "devicetree", env=qemu["env"])
        text = _dtc(steps, "dtb", "dts", dumped)
        source.write_text(text + recipe.file(recipe.data["devicetree"]).read_text())
        _dtc(steps, "dts", "dtb", source, "-o", folder / FILE)
        dumped.unlink()
        source.unlink()


def _dtc(steps: BuildSteps, given: str, wanted: str, file: Path, *more: str | Path) -> str:
    # Quiet: QEMU's own nodes draw warnings that nobody here can do anything about.
    command: list[str | Path] = ["dtc", "-q", "-I", given, "-O", wanted, *more, file]
    return steps.run(command, f"Making {wanted} of {file.name}", "devicetree")
