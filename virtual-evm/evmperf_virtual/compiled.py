"""What is compiled for a virtual board: its U-Boot, programs that no package has, and its device tree."""

import os
import re
import shutil
from pathlib import Path

from evmperf.model.errors import UsageError
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.recipe import Recipe
from evmperf_virtual.steps import BuildSteps

_DROPPED = re.compile(
    r"^Value requested for (\w+) .*\n(?:Requested value: +CONFIG|.*\nActual value: +CONFIG)", re.MULTILINE
)
"""What U-Boot's script says of an option; one whose menu is gone is as good as not set."""


def uboot_inputs(recipe: Recipe) -> list[str]:
    """Return the recipe's files that U-Boot is made of."""
    spec = recipe.data["uboot"]
    return [*spec["fragments"], *spec.get("patches", []), *spec.get("files", {})]


def build_uboot(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Build the recipe's U-Boot into `target`/u-boot.bin, with its version in `target`/version."""
    spec = recipe.data["uboot"]
    work = target / "work"
    top, out = work / "source", work / "out"
    with (
        steps.step(f"U-Boot source from Debian {spec['suite']}"),
        DebianArchive(steps, work / "apt", spec["suite"], sources=True) as archive,
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
        # It adds fragments to a configuration, and says which of their options Kconfig has dropped.
        merge: list[str | Path] = ["sh", top / "scripts/kconfig/merge_config.sh", "-O", out, out / ".config"]
        fragments = [recipe.file(name) for name in spec["fragments"]]
        said = steps.run([*merge, *fragments], "Configuring U-Boot", "uboot", env=env, cwd=top)
        wanted = re.findall(r"CONFIG_\w+", "".join(file.read_text() for file in fragments))
        if lost := [name for name in _DROPPED.findall(said) if name in wanted]:
            raise UsageError(
                f"U-Boot's configuration does not take {', '.join(lost)}; correct the fragments."
            )
        steps.run(["nice", *make, "u-boot.bin"], "Compiling U-Boot", "uboot", env=env)
    shutil.copyfile(out / "u-boot.bin", target / "u-boot.bin")
    release = (out / "include/config/uboot.release").read_text().strip()
    (target / "version").write_text(release)
    shutil.rmtree(work)


def program_inputs(recipe: Recipe) -> list[str]:
    """Return the files of the folder of programs: if one changes, all are compiled anew."""
    folder = recipe.data["programs"]["folder"]
    return [f"{folder}/{name}" for name in recipe.files(folder)]


def build_programs(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Compile the recipe's programs into `target`, from its own folder, else from a Debian source package."""
    spec = recipe.data["programs"]
    own, foreign = recipe.files(spec["folder"]), target / "source"
    with (
        steps.step(f"Source of {spec['source']} from Debian {spec['suite']}"),
        DebianArchive(steps, target / "apt", spec["suite"], sources=True) as archive,
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


def build_devicetree(recipe: Recipe, qemu: Path, steps: BuildSteps, folder: Path) -> None:
    """Make `folder`/board.dtb of the tree of the program `qemu` and the recipe's source for dtc."""
    words = recipe.data["arguments"]
    machine, memory = (words[words.index(option) + 1] for option in ("-M", "-m"))
    dumped, source = folder / "dumped.dtb", folder / "board.dts"
    command = [qemu, "-M", f"{machine},dumpdtb={dumped}", "-m", memory, "-display", "none"]
    with steps.step("Device tree"):
        steps.run(command, "Dumping QEMU's device tree", "devicetree")
        text = _dtc(steps, "dtb", "dts", dumped)
        source.write_text(text + recipe.file(recipe.data["devicetree"]).read_text())
        _dtc(steps, "dts", "dtb", source, "-o", folder / "board.dtb")
        dumped.unlink()
        source.unlink()


def _dtc(steps: BuildSteps, given: str, form: str, file: Path, *more: str | Path) -> str:
    # Quiet: QEMU's own nodes cause warnings that a recipe cannot avoid.
    command: list[str | Path] = ["dtc", "-q", "-I", given, "-O", form, *more, file]
    return steps.run(command, f"Making {form} of {file.name}", "devicetree")
