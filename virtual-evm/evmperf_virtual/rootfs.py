"""The virtual board's userland, kernel and initrd: packages unpacked, and glue instead of postinst.

No maintainer script runs, so neither qemu-user nor a chroot nor a mount is needed.
"""

import fnmatch
import json
import lzma
import os
import re
import shutil
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.recipe import Recipe
from evmperf_virtual.steps import BuildSteps, output

_MODPROBE_S = 60.0


def build(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack the recipe's packages into `target`/root, their versions in `target`/facts.json."""
    spec = recipe.data["rootfs"]
    root = target / "root"
    with (
        steps.step(f"Userland from Debian {spec['suite']}"),
        DebianArchive(steps, target / "apt", spec["suite"]) as archive,
    ):
        packages = archive.unpack(archive.resolve(spec["packages"], spec["leave_out"]), root)
    packages |= _singles(spec.get("single_packages", []), steps, target)
    for pattern in spec["leave_out_files"]:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (target / "facts.json").write_text(json.dumps({"packages": packages}))


def build_kernel(recipe: Recipe, steps: BuildSteps, target: Path) -> None:
    """Unpack the recipe's kernel into `target`: kernel, root/ with modules and kept files, facts.json."""
    spec, suite = recipe.data["kernel"], recipe.data["rootfs"]["suite"]
    unpacked, modules = target / "unpacked", target / "root/usr/lib/modules"
    with steps.step(f"Kernel from Debian {suite}"), DebianArchive(steps, target / "apt", suite) as archive:
        # Only the kernel's own files: what else it depends on makes initrds, which is done here.
        images = {name for name in archive.resolve([spec["package"]], []) if name.startswith("linux-image")}
        kernel = archive.unpack(images - {spec["package"]} or images, unpacked)
        modules.parent.mkdir(parents=True)
        (unpacked / "usr/lib/modules").rename(modules)
        release = _sort_modules(modules, spec)
        (unpacked / f"boot/vmlinuz-{release}").rename(target / "kernel")
        for path in (path for pattern in spec.get("keep", []) for path in unpacked.glob(pattern)):
            place = target / "root" / path.relative_to(unpacked)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
        shutil.rmtree(unpacked)
    (target / "facts.json").write_text(json.dumps({"kernel": release, "packages": kernel}))


def _singles(specs: list[dict[str, Any]], steps: BuildSteps, target: Path) -> dict[str, str]:
    """Unpack single packages of other suites or components, without what they depend on."""
    packages: dict[str, str] = {}
    for spec in specs:
        suite, component = spec["suite"], spec["component"]
        with (
            steps.step(f"{spec['package']} from Debian {suite} {component}"),
            DebianArchive(steps, target / "apt", suite, component=component) as archive,
        ):
            packages |= archive.unpack([spec["package"]], target / "root")
    return packages


def _sort_modules(modules: Path, spec: dict[str, Any]) -> str:
    """Drop modules that no virtual board has use for, unpack the others; returns the release."""
    (folder,) = modules.iterdir()
    keep: list[Path] = []
    for path in folder.rglob("*.ko*"):
        name = str(path.relative_to(folder / "kernel"))
        if any(fnmatch.fnmatch(name, pattern) for pattern in spec["leave_out_modules"]):
            path.unlink()
        elif path.suffix == ".xz":
            keep.append(path)
    # Under emulation unpacking a module costs more than reading the bigger file.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_unxz, keep))
    return folder.name


def _unxz(path: Path) -> None:
    path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
    path.unlink()


def finish(recipe: Recipe, root: Path, build_id: str) -> None:
    """Put the glue into an unpacked userland: accounts, links, the recipe's own files."""
    spec = recipe.data["rootfs"]
    for name in ("proc", "sys", "dev", "run", "tmp", "mnt", "root", "var/log", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    masters = root / "usr/share/base-passwd"
    passwd = (masters / "passwd.master").read_text().replace("root:*:", "root::", 1)
    passwd = re.sub(r"^(root:.*):[^:]*$", r"\1:/bin/bash", passwd, count=1, flags=re.MULTILINE)
    write(root / "etc/passwd", passwd)
    write(root / "etc/group", (masters / "group.master").read_text())
    write(root / "etc/profile", (root / "usr/share/base-files/profile").read_text())
    write(root / "etc/evmperf-release", f"BUILD_ID={build_id}\n")
    for name, destination in spec["links"].items():
        link(root / name, destination)
    for applet in spec["applets"]:
        name = root / "usr/bin" / applet
        # A link may lead to a place that only this machine has, or lacks.
        if not any(os.path.lexists(root / d / applet) for d in ("usr/bin", "usr/sbin")):
            link(name, "/usr/bin/busybox")
    for name, path in recipe.files(spec["overlay"]).items():
        place = root / name
        write(place, path.read_bytes())
        place.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def assemble(
    recipe: Recipe, steps: BuildSteps, parts: dict[str, Path], root: Path, *, release: str, build_id: str
) -> None:
    """Put a root file system together in `root`, with the kernel and its initrd in /boot."""
    # Hard links: what is written is written anew, see write().
    root.mkdir()
    for part in ("userland", "kernel"):
        command: list[str | Path] = ["cp", "-a", "--link", f"{parts[part]}/root/.", root]
        steps.run(command, f"Copying the {part}", "image")
    finish(recipe, root, build_id)
    if "programs" in parts:
        programs = parts["programs"].iterdir()
        steps.run(["cp", "--link", *programs, root / "usr/bin"], "Copying the programs", "image")
    steps.run(["depmod", "-b", root / "usr", release], "Indexing kernel modules", "rootfs")
    boot = root / "boot"
    boot.mkdir(exist_ok=True)
    os.link(parts["kernel"] / "kernel", boot / "Image")
    (boot / "initrd").write_bytes(initrd(recipe, root, release))


def write(path: Path, content: str | bytes) -> None:
    """Write a file anew; the old one may be hard-linked into the cached userland."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o644)


def link(path: Path, destination: str) -> None:
    """Make a symbolic link in place of whatever is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(destination)


def initrd(recipe: Recipe, root: Path, release: str, section: str = "initrd") -> bytes:
    """Return an uncompressed initrd: busybox, the modules that a section names, its `init`."""
    spec = recipe.data[section]
    command = ["modprobe", "-C", "/dev/null", "-d", str(root / "usr"), "-S", release]
    loading = output([*command, "--all", "--show-depends", *spec["modules"]], _MODPROBE_S)
    loaded = re.findall(r"^insmod (.*\.ko)", loading, re.MULTILINE)
    modules = [Path(module) for module in dict.fromkeys(loaded)]
    folders = [(name, stat.S_IFDIR | 0o755, b"") for name in ("bin", "dev", "proc", "sys", "root", "modules")]
    return cpio(
        [
            *folders,
            ("bin/busybox", stat.S_IFREG | 0o755, (root / "usr/bin/busybox").read_bytes()),
            ("bin/sh", stat.S_IFLNK | 0o777, b"busybox"),
            ("init", stat.S_IFREG | 0o755, recipe.file(spec["init"]).read_bytes()),
            # The number keeps the order in which they depend on each other.
            *(
                (f"modules/{number:02}-{module.name}", stat.S_IFREG | 0o644, module.read_bytes())
                for number, module in enumerate(modules)
            ),
        ]
    )


def cpio(entries: Sequence[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive in the kernel's `newc` format of names, modes (stat(2)) and contents, the same bytes for
    the same entries: owners are root, times are zero. The program cpio would need every file on disk.
    """
    data = bytearray()
    for inode, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        encoded = name.encode() + b"\0"
        number = inode if mode else 0
        # Inode, mode, uid, gid, links, time, size, device (2), special device (2), name, checksum.
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        data += b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (encoded, content):
            data += part
            data += bytes(-len(data) % 4)
    return bytes(data)
