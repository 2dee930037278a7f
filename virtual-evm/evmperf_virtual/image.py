"""The image of a virtual board: all that QEMU needs to run it, built once and kept in the cache."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from evmperf.measure.runs import folders
from evmperf.model.errors import LabError
from evmperf_virtual import compiled, host_programs, rootfs
from evmperf_virtual.recipe import Recipe, recipes_dir
from evmperf_virtual.steps import BuildSteps, Progress, check_host, make_ext4

_MIB = 1024 * 1024
_PARTITION_START_MIB = 1


class Disk(msgspec.Struct, frozen=True):
    """A disk of the image: `base` is a file in the image's folder, None for an empty disk of `mib` mebibytes,
    each byte of which is `fill`. With a base and no `mib` a board's own disk holds only what differs from it.
    """

    base: str | None
    mib: int | None
    fill: int = 0

    @property
    def overlay(self) -> bool:
        """Whether a board's own disk holds only what differs from `base`."""
        return self.base is not None and self.mib is None


class EvmImage(msgspec.Struct, frozen=True):
    """A built image; the fields are those of image.json."""

    variant: str
    hash: str
    qemu: str
    """The program; qemu-img is beside it."""
    arguments: list[str]
    """QEMU's arguments as str.format templates of `disk`, `net` and `dir`."""
    disks: dict[str, Disk]
    tester_path: str
    """Folder of the tester's own programs, "" for an image without."""
    directory: Path = Path()
    boot_rom: dict[str, Any] | None = None
    """Where a board that starts from a card has its boot loader; see `disks`."""
    tester_machine: dict[str, Any] | None = None
    """The `arguments` of a tester that is a QEMU of its own; see `testermachine`."""


def load(variant: str) -> EvmImage:
    """Return the variant's image for the recipe as it is now; LabError if it is not built."""
    recipe = Recipe.read(variant)
    folder = _images() / f"{variant}-{recipe.hash()}"
    file = folder / "image.json"
    remedy = f"run `evmperf virtual build {variant}`"
    if not file.is_file():
        raise LabError(f"The virtual board {variant!r} is not built ({file} is missing); {remedy}.")
    try:
        image = msgspec.json.decode(file.read_bytes(), type=EvmImage)
    except msgspec.DecodeError as error:
        raise LabError(f"{file} is damaged ({error}); {remedy} with --force.") from error
    # The parts lie beside the images; somebody may have tidied the cache by hand.
    if not Path(image.qemu).exists():
        raise LabError(f"{file} names a QEMU that is gone; {remedy} with --force.")
    return msgspec.structs.replace(image, directory=folder)


def build(variant: str, *, force: bool = False, progress: Progress) -> EvmImage:
    """The variant's image, built unless it is cached; `force` builds all its parts anew."""
    recipe = Recipe.read(variant)
    steps = BuildSteps(_images() / "logs", progress)
    final = _images() / f"{variant}-{recipe.hash()}"
    with suppress(LabError):  # one that is not there, or damaged
        if not force:
            return load(variant)  # without waiting for somebody's build of another variant
    with _locked(steps):
        with suppress(LabError):
            if not force:
                return load(variant)
        check_host(recipes_dir() / "host-packages.txt")
        for log in steps.log_dir.glob("*.log"):
            log.unlink()
        try:
            with steps.step(f"Virtual board {variant!r}, {final.name}"):
                parts = _build_parts(recipe, steps, force)
                with _fresh(final) as folder:
                    _assemble(recipe, steps, parts, folder)
        except OSError as error:
            raise LabError(
                f"Building the virtual board {variant!r} in {_images()} failed: {error}; "
                "make room or correct the permissions there and build again."
            ) from error
    return load(variant)


def _images() -> Path:
    return folders.cache_dir() / "virtual"


@contextmanager
def _locked(steps: BuildSteps) -> Iterator[None]:
    with (_images() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            steps.tell("Another build is running; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _fresh(final: Path) -> Iterator[Path]:
    """Give a new folder that becomes `final` when all went well, and vanishes otherwise."""
    work = final.with_name(f".{final.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
        shutil.rmtree(final, ignore_errors=True)
        work.rename(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _build_parts(recipe: Recipe, steps: BuildSteps, force: bool) -> dict[str, Path]:
    """Build, at the same time, the parts that the cache lacks; return their folders."""

    make: dict[str, Callable[[Recipe, BuildSteps, Path], None]] = {
        "uboot": compiled.build_uboot,
        "qemu": partial(host_programs.build, "qemu"),
        "userland": rootfs.build,
        "kernel": rootfs.build_kernel,
        "programs": compiled.build_programs,
        "tester": partial(host_programs.build, "tester"),
    }

    def part(name: str, key: str) -> Path:
        final = _images() / "parts" / key
        if force or not final.is_dir():
            with _fresh(final) as folder:
                make[name](recipe, steps, folder)
        return final

    with ThreadPoolExecutor(len(make)) as pool:
        jobs = {name: pool.submit(part, name, key) for name, key in part_keys(recipe).items()}
    return {name: job.result() for name, job in jobs.items()}


def part_keys(recipe: Recipe) -> dict[str, str]:
    """The parts of an image and their folders in the cache, named by a hash: variants share parts."""
    unpacked = _narrowed(recipe, "suite", "packages", "single_packages", "leave_out", "leave_out_files")
    hashes = {
        "uboot": recipe.hash("uboot", files=compiled.uboot_inputs(recipe)),
        "qemu": recipe.hash("qemu"),
        "userland": unpacked.hash("rootfs"),
        "kernel": _narrowed(recipe, "suite").hash("rootfs", "kernel"),
    }
    if "programs" in recipe.data:
        hashes["programs"] = recipe.hash("programs", files=compiled.program_inputs(recipe))
    if "tester" in recipe.data:
        hashes["tester"] = recipe.hash("tester")
    return {name: f"{name}-{value}" for name, value in hashes.items()}


def _narrowed(recipe: Recipe, *keys: str) -> Recipe:
    """The recipe with nothing but these keys in its section `rootfs`."""
    section = {key: value for key, value in recipe.data["rootfs"].items() if key in keys}
    return replace(recipe, data={**recipe.data, "rootfs": section})


def _assemble(recipe: Recipe, steps: BuildSteps, parts: dict[str, Path], folder: Path) -> None:
    """Make the disks and image.json in `folder` of the parts."""
    build_id = recipe.hash()
    facts: dict[str, Any] = {"packages": {}}
    for part in ("userland", "kernel"):
        more = json.loads((parts[part] / "facts.json").read_text())
        facts |= {**more, "packages": {**facts["packages"], **more["packages"]}}
    qemu = parts["qemu"] / "bin" / recipe.data["qemu"]["programs"][0]
    version = steps.run([qemu, "--version"], "Starting QEMU", "image")
    aio = host_programs.fastest_aio(qemu.with_name("qemu-img"), folder / "aio")
    shutil.copyfile(parts["uboot"] / "u-boot.bin", folder / "u-boot.bin")
    facts["uboot"] = (parts["uboot"] / "version").read_text()
    facts["qemu"] = version.split()[3]
    with steps.step("Root file system"):
        root = folder / "root"
        rootfs.assemble(recipe, steps, parts, root, release=facts["kernel"], build_id=build_id)
    if "installer" in recipe.data:
        os.link(parts["kernel"] / "kernel", folder / "Image")
        memory = rootfs.initrd(recipe, root, facts["kernel"], "installer")
        (folder / "installer").write_bytes(memory)
    disks = {}
    with steps.step("Disks"):
        for name, spec in recipe.data["disks"].items():
            disks[name] = _disk(steps, folder, name, spec)
    shutil.rmtree(root)
    if "devicetree" in recipe.data:
        compiled.build_devicetree(recipe, qemu, steps, folder)
    data = {
        "variant": recipe.variant,
        "hash": build_id,
        "qemu": str(qemu),
        "arguments": recipe.data["arguments"],
        "disks": disks,
        "facts": facts,
        "tester_path": str(parts["tester"] / "bin") if "tester" in parts else "",
        "boot_rom": recipe.data.get("boot_rom"),
        "tester_machine": recipe.data.get("tester_machine"),
        "parts": sorted(path.name for path in parts.values()),
    }
    (folder / "image.json").write_text(json.dumps(data, indent=1).replace("{aio}", aio))


def _disk(steps: BuildSteps, folder: Path, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Make one disk's base file, if it needs one, and return its entry for image.json."""
    if other := spec.get("overlay_of"):
        return {"base": f"{other}.img", "mib": None}
    mib = spec["mib"]
    if "label_id" not in spec:
        return {"base": None, "mib": mib, "fill": spec.get("fill", 0)}
    file = folder / f"{name}.img"
    with file.open("wb") as disk:
        disk.truncate(mib * _MIB)
    size = spec.get("partition_mib", mib - _PARTITION_START_MIB)
    fat = spec.get("fat_mib", 0)
    # A partition table counts in sectors; sfdisk takes a file's for 512 bytes.
    sectors = _MIB // spec.get("sector_bytes", 512)
    end = _PARTITION_START_MIB + size
    lines = [f"start={_PARTITION_START_MIB * sectors}, size={size * sectors}, type=83"]
    if fat:
        lines.append(f"start={end * sectors}, size={fat * sectors}, type=c")
    partition(steps, file, ["label: dos", f"label-id: 0x{spec['label_id']}", *lines])
    if fat:
        command: list[str | Path] = ["mkfs.vfat", "--invariant", "-F", "32", "-s", "1"]
        command += [f"--offset={end * sectors}", file, str(fat * 1024)]
        steps.run(command, f"Making the FAT of the disk {name}", "image")
    if "filesystem" in spec:
        make_ext4(
            steps,
            file,
            folder / "root",
            start_mib=_PARTITION_START_MIB,
            mib=size,
            label=name,
            uuid=spec["uuid"],
        )
    return {"base": file.name, "mib": None if "filesystem" in spec else mib}


def partition(steps: BuildSteps, file: Path, lines: list[str]) -> None:
    """Give a disk file the partition table that these lines tell sfdisk."""
    text = "\n".join([*lines, ""])
    steps.run(["sfdisk", "--quiet", file], f"Partitioning {file.name}", "image", stdin=text)
