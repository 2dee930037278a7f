"""What kernels and boot loaders say of themselves, found in their files."""

import contextlib
import io
import re
import struct
from dataclasses import dataclass

from evmperf.model.errors import UsageError
from evmperf.provision import content

_FDT_MAGIC = 0xD00DFEED
_BEGIN, _END, _PROPERTY, _NOP = 1, 2, 3, 4
_KERNEL_LIMIT = 1 << 28

_BANNER = re.compile(rb"U-Boot (?:SPL )?20\d\d\.\d\d[^\0\n\r(]{0,80}\([^)\0\n]{10,60}\)")
_LINUX = re.compile(rb"Linux version (\S+) [^\0\n]*?(#\d+ [^\0\n]+)")


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
    found = content.of_bytes(data)
    plain = bytearray()
    with contextlib.suppress(UsageError):
        for piece in content.stream(io.BytesIO(data), found, "kernel") if found else ():
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
