"""Releases of a virtual EVM: images of its card, as a vendor publishes them (`.wic.zst`).

Each has a number, by which all that a board shows of its software differs: the operating system's
BUILD_ID, the build number in `uname -v`, the date in U-Boot's first line, and the disk's id. Kernel
and U-Boot are not built anew for that: the numbers are written into them in place.

    python -m selftests.support.cardimage VARIANT NUMBER FILE
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from evmperf_virtual import image, rootfs
from evmperf_virtual.recipe import Recipe
from evmperf_virtual.steps import BuildSteps, make_ext4

_MIB = 1 << 20
_SECTOR = 512
_KERNEL_BANNER = rb"(#)\d( SMP [^\0\n]*)"
"""The build number in `uname -v`."""
_UBOOT_BANNER = rb"(U-Boot 20\d\d\.\d\d[^\0\n(]*\(\w{3} )\d\d( )"
"""The day of the date in U-Boot's first line."""


def name(variant, number):
    """What a release is called, as its file and as its BUILD_ID."""
    return f"{variant}-2026.{number:02}"


def build(variant, number, target, progress):
    """Make the compressed image of a release, with a number from 1 to 9, of a variant whose recipe has a
    section `release`.
    """
    recipe = Recipe.read(variant)
    folder = image.build(variant, progress=progress).directory
    parts = json.loads((folder / "image.json").read_text())["parts"]
    paths = {part.split("-")[0]: folder.parent / "parts" / part for part in parts}
    steps = BuildSteps(folder.parent / "logs", progress)
    with (
        steps.step(f"Release {name(variant, number)}"),
        tempfile.TemporaryDirectory(prefix=".release", dir=folder.parent) as work,
    ):
        raw = _make(recipe, steps, paths, Path(work), number)
        steps.run(["zstd", "-qfT0", raw, "-o", target], "Compressing a release", "image")


def _make(recipe, steps, parts, work, number):
    """Make the raw image of a release in the folder `work` of the parts of an image; returns its file."""
    spec, root, raw, loader = recipe.data["release"], work / "root", work / "card.img", work / "u-boot.bin"
    release = json.loads((parts["kernel"] / "facts.json").read_text())["kernel"]
    build_id = name(recipe.variant, number)
    rootfs.assemble(recipe, steps, parts, root, release=release, build_id=build_id)
    kernel = root / "boot/Image"
    numbered = _numbered(kernel.read_bytes(), _KERNEL_BANNER, str(number))
    kernel.unlink()  # a hard link: it is made anew
    kernel.write_bytes(numbered)
    boot_mib, root_mib = spec["boot_mib"], spec["root_mib"]
    with raw.open("wb") as disk:
        disk.truncate((1 + boot_mib + root_mib) * _MIB)
    sectors = _MIB // _SECTOR
    table = [
        "label: dos",
        f"label-id: 0x{spec['label_id']}{number:02x}",
        f"start={sectors}, size={boot_mib * sectors}, type=c, bootable",
        f"start={(1 + boot_mib) * sectors}, size={root_mib * sectors}, type=83",
    ]
    image.partition(steps, raw, table)
    # The FAT with the boot loader and what it reads.
    program = (parts["uboot"] / "u-boot.bin").read_bytes()
    loader.write_bytes(_numbered(program, _UBOOT_BANNER, f"{number:02}"))
    make: list[str | Path] = ["mkfs.vfat", "--invariant", "-n", "boot", "-F", "16"]
    steps.run(
        [*make, f"--offset={sectors}", raw, str(boot_mib * 1024)], "Making the FAT of a release", "image"
    )
    for file in (loader, recipe.file("uEnv.txt")):
        copy: list[str | Path] = ["mcopy", "-i", f"{raw}@@1M", file, f"::{file.name}"]
        steps.run(copy, f"Copying {file.name} to the FAT", "image")
    uuid = f"7d1f4a52-6c0e-4f53-9d0b-3f2f5a1ce1{number:02x}"
    make_ext4(steps, raw, root, start_mib=1 + boot_mib, mib=root_mib, label="root", uuid=uuid)
    return raw


def _numbered(program, pattern, number):
    """A program with the number between the two groups of a pattern."""
    done, count = re.subn(pattern, rb"\g<1>" + number.encode() + rb"\g<2>", program)
    assert count, "no banner: run `evmperf virtual build --force`"
    return done


if __name__ == "__main__":
    build(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), print)
