"""What an image is, read without booting or mounting it: what its kernels and boot loaders say of themselves.

A board that runs the image shows the same facts on its console, so both can be compared.
"""

import contextlib
import hashlib
import io
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from evmperf.measure import provenance
from evmperf.model.errors import UsageError
from evmperf.provision import content as contents
from evmperf.provision import disk
from evmperf.provision.disk import Ext, Fat

_LOADERS = ("u-boot.img", "u-boot.bin", "tispl.bin")
_KERNELS = ("Image", "Image.gz", "fitImage", "vmlinuz", "zImage")
_SILICON = re.compile(r"tiboot3-.*?(?:-|_)(gp|hs-fs|hs)(?:-|_).*\.bin")
_SILICON_NAMES = {"gp": "gp", "hs-fs": "hs-fs", "hs": "hs-se"}
_FDT_MAGIC = 0xD00DFEED
_BEGIN, _END, _PROPERTY, _NOP = 1, 2, 3, 4
_KERNEL_LIMIT = 1 << 28

_BANNER = re.compile(rb"U-Boot (?:SPL )?20\d\d\.\d\d[^\0\n\r(]{0,80}\([^)\0\n]{10,60}\)")
_LINUX = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d+ [^\0\n]+)")


class SystemIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What a system says of itself, on an image or as it runs; a field is empty where it says nothing.

    `uboot` is U-Boot's first line, `kernel` and `kernel_version` are `uname -r` and `uname -v`,
    `root` the PARTUUID of the partition with the root file system, `machine` the name that TI's
    images carry as their host name.
    """

    root: str = ""
    uboot: str = ""
    kernel: str = ""
    kernel_version: str = ""
    machine: str = ""
    os_release: dict[str, str] = {}
    build_id: str = ""

    @property
    def release(self) -> str:
        """The release by the rule for running boards: BUILD_ID, else VERSION_ID of os-release."""
        return provenance.release_of(self.build_id, self.os_release)

    @property
    def name(self) -> str:
        """What the operating system calls itself."""
        return self.os_release.get("PRETTY_NAME", "")


class Identity(SystemIdentity, frozen=True, kw_only=True):
    """What an image says of itself: `silicon` is the kind of chip (gp, hs-fs, hs-se) that its tiboot3.bin is
    for, `device_trees` the boards that it has device trees of.
    """

    label: str
    disk: str
    loader: str = ""
    silicon: str = ""
    silicons: tuple[str, ...] = ()
    device_trees: tuple[str, ...] = ()
    end: int = 0
    """The first byte behind the last partition: an image that ends before is cut short."""
    partitions: tuple[str, ...] = ()
    """The partitions' PARTUUIDs."""


def read(content: Path) -> Identity:
    """The identity of an image's raw content; raises UsageError without a partition table, or LabError."""
    table = disk.read(content)
    facts: dict[str, Any] = {
        "label": table.label,
        "disk": table.id,
        "end": table.end,
        "partitions": tuple(partition.uuid for partition in table.partitions),
    }
    for partition in table.partitions:
        if partition.start + partition.size > content.stat().st_size:
            continue  # cut short: `end` tells
        system = disk.file_system(content, partition)
        if system is None:
            continue
        if isinstance(system, Fat):
            facts |= _boot(system)
        elif root := _root(system):
            facts |= {**root, "root": partition.uuid}
    return Identity(**facts)


def _boot(system: Fat) -> dict[str, Any]:
    """The boot partition: its boot loader, and the chips that it is for."""
    facts: dict[str, Any] = {}
    names = system.names("/")
    for name in _LOADERS:
        if name in names and (text := banner(system.read(f"/{name}") or b"")):
            facts |= {"uboot": text, "loader": name}
            break
    first = {name: match[1] for name in names if (match := _SILICON.fullmatch(name))}
    if first and "tiboot3.bin" in names:
        facts["silicons"] = tuple(sorted({_SILICON_NAMES[kind] for kind in first.values()}))
        used = _digest(system.read("/tiboot3.bin"))
        same = sorted(n for n in first if _digest(system.read(f"/{n}")) == used)
        facts["silicon"] = _SILICON_NAMES[first[same[0]]] if same else ""
    return facts | _kernel(system, "", names, _KERNELS)


def _kernel(system: Fat | Ext, folder: str, names: list[str], wanted: Iterable[str]) -> dict[str, Any]:
    """Release and version of the first of the wanted files that is a kernel."""
    for name in wanted:
        if name in names and (found := kernel(system.read(f"{folder}/{name}") or b"")):
            return {"kernel": found.release, "kernel_version": found.version}
    return {}


def _root(system: Ext) -> dict[str, Any]:
    os_release = system.read("/etc/os-release") or system.read("/usr/lib/os-release")
    if os_release is None:
        return {}
    facts: dict[str, Any] = {"os_release": assignments(os_release)}
    own = assignments(system.read("/etc/evmperf-release") or b"")
    facts["build_id"] = own.get("BUILD_ID", "")
    names = system.names("/boot")
    more = sorted(n for n in names if n.startswith(("Image-", "vmlinuz-")))
    facts |= _kernel(system, "/boot", names, [*_KERNELS, *more])
    facts["machine"] = (system.read("/etc/hostname") or b"").decode("utf-8", "replace").strip()
    trees = [n for folder in ("/boot/dtb", "/boot/dtb/ti", "/boot") for n in system.names(folder)]
    facts["device_trees"] = tuple(sorted({n.removesuffix(".dtb") for n in trees if n.endswith(".dtb")}))
    return facts


def assignments(text: bytes) -> dict[str, str]:
    """What an os-release says."""
    return provenance.assignments(text.decode("utf-8", "replace"))


def _digest(data: bytes | None) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def lines(identity: Identity) -> list[tuple[str, str]]:
    """The identity for people, as pairs of a word and its value."""
    return [
        (word, value)
        for word, value in (
            ("release", identity.release),
            ("machine", identity.machine),
            ("operating system", identity.name),
            ("kernel", " ".join(filter(None, [identity.kernel, identity.kernel_version]))),
            ("U-Boot", identity.uboot + (f" ({identity.loader})" if identity.loader else "")),
            ("chip", _silicon(identity)),
            ("disk", f"{identity.label} {identity.disk}"),
            ("root", f"PARTUUID={identity.root}" if identity.root else ""),
            ("device trees", ", ".join(identity.device_trees)),
        )
        if value
    ]


def _silicon(identity: Identity) -> str:
    others = [kind for kind in identity.silicons if kind != identity.silicon]
    text = identity.silicon or ("unknown" if others else "")
    return text + (f" (files for {', '.join(others)} beside it)" if text and others else "")


@dataclass(frozen=True)
class Kernel:
    """A Linux kernel: what `uname -r` and `uname -v` say when it runs."""

    release: str
    version: str


def banner(data: bytes) -> str:
    """U-Boot's first line as its file has it, "" for a file without: `U-Boot 2025.01 (Jan ...)`."""
    found = _BANNER.findall(data)
    # tispl.bin holds SPL's banner; u-boot.img may hold both: U-Boot proper's counts.
    proper = [text for text in found if not text.startswith(b"U-Boot SPL")]
    best: bytes = (proper or found or [b""])[0]
    return best.decode("ascii", "replace")


def kernel(data: bytes) -> Kernel | None:
    """The kernel in an Image, a compressed Image, or a fitImage; None if there is none."""
    if data[:4] == struct.pack(">I", _FDT_MAGIC):
        return next(filter(None, map(kernel, fit_kernels(data))), None)
    plain = _unpacked(data)
    found = _LINUX.search(plain)
    if found is None:
        return None
    return Kernel(found[1].decode("ascii", "replace"), found[2].decode("ascii", "replace").strip())


def _unpacked(data: bytes) -> bytes:
    """A kernel uncompressed; what is not compressed, or cannot be read, as it is."""
    # An EFI zboot kernel has the compressed one inside: its header says where and how much.
    if data[:2] == b"MZ" and data[4:8] == b"zimg":
        start, size = struct.unpack_from("<II", data, 8)
        data = data[start : start + size]
    found = contents.of_bytes(data)
    plain = bytearray()
    with contextlib.suppress(UsageError):
        for piece in contents.stream(io.BytesIO(data), found, "kernel") if found else ():
            plain += piece
            if len(plain) >= _KERNEL_LIMIT:
                break
    return bytes(plain[:_KERNEL_LIMIT]) or data


def fit_kernels(data: bytes) -> list[bytes]:
    """The kernels in a flattened image tree (U-Boot's FIT, doc/usage/fit/source_file_format.rst): in the
    tree, behind its aligned end at `data-offset`, or at `data-position` of the file.
    """
    size = struct.unpack_from(">I", data, 4)[0]
    kernels = []
    for path, properties in nodes(data).items():
        if not path.startswith("/images/") or properties.get("type") != b"kernel\0":
            continue
        if "data" in properties:
            kernels.append(properties["data"])
        elif "data-size" in properties:
            length = int.from_bytes(properties["data-size"], "big")
            if "data-position" in properties:
                start = int.from_bytes(properties["data-position"], "big")
            else:
                start = (size + 3 & ~3) + int.from_bytes(properties.get("data-offset", b""), "big")
            kernels.append(data[start : start + length])
    return kernels


def nodes(data: bytes) -> dict[str, dict[str, bytes]]:
    """The nodes of a flattened device tree (Devicetree Specification, chapter 5) by path, up to the first
    damage. Properties are bytes: the library for device trees would guess their types.
    """
    found: dict[str, dict[str, bytes]] = {}
    path: list[str] = []
    try:
        _, _, at, strings = struct.unpack_from(">4I", data)
        while True:
            (token,) = struct.unpack_from(">I", data, at)
            at += 4
            if token == _BEGIN:
                end = data.index(b"\0", at)
                path.append(data[at:end].decode("ascii", "replace"))
                at = end + 4 & ~3
                found["/".join(path) or "/"] = {}
            elif token == _PROPERTY:
                length, name_at = struct.unpack_from(">II", data, at)
                end = data.index(b"\0", strings + name_at)
                name = data[strings + name_at : end].decode("ascii", "replace")
                found["/".join(path) or "/"][name] = data[at + 8 : at + 8 + length]
                at = at + 8 + length + 3 & ~3
            elif token == _END:
                path.pop()
            elif token != _NOP:
                return found
    except (struct.error, ValueError, IndexError, KeyError):
        return found
