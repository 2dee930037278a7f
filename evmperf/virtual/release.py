"""Releases of a virtual EVM: images of its card, as a vendor publishes them (`.wic.zst`).

Each has a number, by which all that a board shows of its software differs: the operating system's
BUILD_ID, the build number in `uname -v`, the date in U-Boot's first line, and the disk's id. Kernel
and U-Boot are not built anew for that: the numbers are written into them in place.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zstandard

from evmperf.model.errors import LabError, UsageError
from evmperf.virtual import image, rootfs
from evmperf.virtual.recipe import Recipe
from evmperf.virtual.steps import Progress, Steps, make_ext4, tool

_MIB = 1 << 20
_LEVEL = 3


def name(variant: str, number: int) -> str:
    """What a release is called, as its file and as its BUILD_ID."""
    return f"{variant}-2026.{number:02}"


def build(variant: str, number: int, target: Path, progress: Progress) -> None:
    """Make the image of a release, with numbers from 1 to 9, compressed.

    Raises UsageError for a variant that has no releases, LabError when making it fails.
    """
    recipe = Recipe.read(variant)
    spec = recipe.data.get("release")
    if spec is None:
        raise UsageError(
            f"the virtual EVM {variant!r} starts from its own disk: it has no releases"
        )
    if not 1 <= number <= 9:
        raise UsageError(f"a release's number is from 1 to 9, not {number}")
    folder = image.build(variant, progress=progress).directory
    parts = json.loads((folder / "image.json").read_text())["parts"]
    paths = {part.split("-")[0]: folder.parent / "parts" / part for part in parts}
    steps = Steps(folder.parent / "logs", progress)
    with (
        steps.step(f"Release {name(variant, number)}"),
        tempfile.TemporaryDirectory(prefix=".release", dir=folder.parent) as work,
    ):
        try:
            raw = _assemble(recipe, steps, paths, Path(work), number, spec)
            _compress(raw, target)
        except OSError as error:
            raise LabError(f"{target} cannot be made: {error}") from None


def _assemble(
    recipe: Recipe,
    steps: Steps,
    parts: Mapping[str, Path],
    work: Path,
    number: int,
    spec: Mapping[str, Any],
) -> Path:
    """Make the raw image in `work`."""
    root, raw = work / "root", work / "card.img"
    release = json.loads((parts["kernel"] / "facts.json").read_text())["kernel"]
    rootfs.assemble(recipe, steps, dict(parts), root, release, name(recipe.variant, number))
    _number_kernel(root / "boot/Image", number)
    boot_mib, root_mib = spec["boot_mib"], spec["root_mib"]
    with raw.open("wb") as file:
        file.truncate((1 + boot_mib + root_mib) * _MIB)
    disk = f"{spec['label_id']}{number:02x}"
    image.partition(
        steps,
        raw,
        ["label: dos", f"label-id: 0x{disk}"]
        + [f"start={_MIB // 512}, size={boot_mib * _MIB // 512}, type=c, bootable"]
        + [f"start={(1 + boot_mib) * _MIB // 512}, size={root_mib * _MIB // 512}, type=83"],
    )
    _make_boot(recipe, steps, raw, parts, work, number, boot_mib)
    uuid = f"7d1f4a52-6c0e-4f53-9d0b-3f2f5a1ce1{number:02x}"
    make_ext4(steps, raw, root, 1 + boot_mib, root_mib, "root", uuid)
    return raw


def _make_boot(
    recipe: Recipe,
    steps: Steps,
    raw: Path,
    parts: Mapping[str, Path],
    work: Path,
    number: int,
    mib: int,
) -> None:
    """Make the FAT with the boot loader and what it reads."""
    loader = work / "u-boot.bin"
    loader.write_bytes(_number_uboot((parts["uboot"] / "u-boot.bin").read_bytes(), number))
    make: list[str | Path] = [tool("mkfs.vfat"), "--invariant", "-n", "boot", "-F", "16"]
    make += [f"--offset={_MIB // 512}", raw, str(mib * 1024)]
    steps.run(make, "Making the FAT of a release", "image")
    for file in (loader, recipe.file("uEnv.txt")):
        copy: list[str | Path] = [tool("mcopy"), "-i", f"{raw}@@1M", file, f"::{file.name}"]
        steps.run(copy, f"Copying {file.name} to the FAT", "image")


def _number_uboot(program: bytes, number: int) -> bytes:
    """Write the number as the day of the date in U-Boot's first line."""
    done, count = re.subn(
        rb"(U-Boot 20\d\d\.\d\d[^\0\n(]*\(\w{3} )\d\d( )",
        lambda match: match[1] + f"{number:02}".encode() + match[2],
        program,
    )
    if not count:
        raise LabError("U-Boot has no first line to tell releases by: build it again with --force")
    return done


def _number_kernel(file: Path, number: int) -> None:
    """Write the number as the build number of `uname -v`; the file is a hard link: make it anew."""
    content = file.read_bytes()
    release = re.search(rb"Linux version (\S+) ", content)
    done, count = re.subn(rb"#\d (SMP [^\0\n]*)", rb"#" + str(number).encode() + rb" \1", content)
    if not release or not count:
        raise LabError(f"{file.name} has no build number to tell releases by")
    file.unlink()
    file.write_bytes(done)


def _compress(raw: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    packer = zstandard.ZstdCompressor(level=_LEVEL, threads=-1, write_checksum=True)
    with raw.open("rb") as source, new.open("wb") as file:
        packer.copy_stream(source, file, size=raw.stat().st_size)
    shutil.move(new, target)
