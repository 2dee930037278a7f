"""U-Boot for a virtual board: Debian's source, a defconfig, fragments, patches."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from evmperf.model.errors import UsageError
from evmperf.virtual.debian import DebianArchive
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import BuildSteps


def inputs(recipe: Recipe) -> list[str]:
    """Return the recipe's files that U-Boot is made of."""
    spec = recipe.data["uboot"]
    return [*spec["fragments"], *spec.get("patches", []), *spec.get("files", {})]


def build(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Build the recipe's U-Boot into `target`/u-boot.bin, with its version in `target`/version."""
    spec = recipe.data["uboot"]
    work = target / "work"
    top, out = work / "source", work / "out"
    with (
        steps.step(f"U-Boot source from Debian {spec['suite']}"),
        DebianArchive.opened(steps, work / "apt", spec["suite"], sources=True) as archive,
    ):
        archive.unpack_source("u-boot", top)
        for patch in spec.get("patches", []):
            file = recipe.file(patch)
            command = ["patch", "--strip=1", "--forward", f"--input={file}"]
            steps.run(command, f"Patching U-Boot with {patch}", "uboot", cwd=top)
        for name, place in spec.get("files", {}).items():
            shutil.copyfile(recipe.file(name), top / place)
    with steps.step("U-Boot compiled"):
        env = {
            "ARCH": "arm",
            "CROSS_COMPILE": spec["cross_compile"],
            # U-Boot prints when it was built; of the same recipe that shall be the same.
            "SOURCE_DATE_EPOCH": str(spec["source_date_epoch"]),
        }
        make: list[str | Path] = ["make", "-C", top, f"O={out}", f"-j{(os.cpu_count() or 1) + 1}"]
        steps.run([*make, spec["defconfig"]], "Configuring U-Boot", "uboot", env=env)
        fragments = [recipe.file(name) for name in spec["fragments"]]
        with (out / ".config").open("a") as config:
            config.writelines("\n" + file.read_text() for file in fragments)
        steps.run([*make, "olddefconfig"], "Configuring U-Boot", "uboot", env=env)
        for file in fragments:
            _check_config(file, (out / ".config").read_text())
        steps.run([*make, "u-boot.bin"], "Compiling U-Boot", "uboot", env=env, nice=True)
    shutil.copyfile(out / "u-boot.bin", target / "u-boot.bin")
    release = (out / "include/config/uboot.release").read_text().strip()
    (target / "version").write_text(release)
    shutil.rmtree(work)


def _check_config(fragment: Path, config: str) -> None:
    """Raise UsageError for options of the fragment that Kconfig dropped."""
    pattern = r"^(?:CONFIG_\w+=.+|# CONFIG_\w+ is not set)$"
    have = set(config.splitlines())
    lost = []
    for line in re.findall(pattern, fragment.read_text(), re.MULTILINE):
        name = line.split("=")[0].removeprefix("# ").removesuffix(" is not set")
        # An option whose menu is gone is not listed at all, which is as good as not set.
        off = line.startswith("#") and not any(known.startswith(f"{name}=") for known in have)
        if line not in have and not off:
            lost.append(name)
    if lost:
        raise UsageError(
            f"U-Boot's configuration does not take {', '.join(lost)} from {fragment}; "
            "correct names or dependencies there."
        )
