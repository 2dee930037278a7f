"""Images as vendors publish them, made by the tools that make them, and small; files that stand for cards; a
server that cuts, stalls and changes.
"""

import contextlib
import hashlib
import random
import re
import subprocess
import time
from dataclasses import dataclass, field

from evmperf.lab.provision import writer
from selftests.support import web

MIB = 1 << 20
BANNER = "U-Boot 2025.01-00253-g0123456789ab (Nov 03 2025 - 07:11:12 +0000)"
SPL = "U-Boot SPL 2025.01-00253-g0123456789ab (Nov 03 2025 - 07:11:12 +0000)"
VERSION = "#1 SMP PREEMPT_DYNAMIC Mon Nov  3 06:01:02 UTC 2025"
RELEASE = "6.12.43-ti-00999-gabcdef012345"
LINUX = f"Linux version {RELEASE} (builder@host) (gcc 13.4.0) {VERSION}\n"
KERNEL = b"MZ\0\0" + bytes(3000) + LINUX.encode() + bytes(5000)
LOADER = b"\x30\x82\x01" + bytes(500) + SPL.encode() + b"\0" + BANNER.encode() + b"\0" + bytes(999)


@dataclass
class Spec:
    """What an image is to hold; the defaults are those of a TI image."""

    label: str = "dos"
    boot: dict[str, bytes] = field(default_factory=lambda: {"u-boot.img": LOADER, "tispl.bin": SPL.encode()})
    root: dict[str, bytes] = field(
        default_factory=lambda: {
            "boot/Image": KERNEL,
            "boot/dtb/ti/k3-am642-evm.dtb": b"dtb",
            "usr/lib/os-release": b'PRETTY_NAME="Arago 2025.01"\nVERSION_ID="2025.01"\n',
            "etc/hostname": b"am64xx-evm\n",
        }
    )
    links: dict[str, str] = field(default_factory=lambda: {"etc/os-release": "../usr/lib/os-release"})
    root_mib: int = 5


def run(*words, text=None):
    subprocess.run([str(word) for word in words], input=text, check=True, capture_output=True, text=True)


def build(file, spec=None):
    """Make the raw image."""
    spec = spec or Spec()
    boot_mib = 1
    tree = file.with_suffix(".tree")
    for name, content in spec.root.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    for name, target in spec.links.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).symlink_to(target)
    with file.open("wb") as disk:
        disk.truncate((2 + boot_mib + spec.root_mib) * MIB)
    kinds = {"dos": ("c", "83"), "gpt": ("uefi", "linux")}[spec.label]
    table = [f"label: {spec.label}", *(["label-id: 0x0badcafe"] if spec.label == "dos" else [])]
    table.append(f"start=1MiB, size={boot_mib}MiB, type={kinds[0]}")
    table.append(f"start={1 + boot_mib}MiB, size={spec.root_mib}MiB, type={kinds[1]}")
    run("/usr/sbin/sfdisk", "--quiet", file, text="\n".join(table))
    run("/usr/sbin/mkfs.vfat", "--offset=2048", file, boot_mib * 1024)
    for name, content in spec.boot.items():
        source = file.with_suffix(".part")
        source.write_bytes(content)
        run("mcopy", "-i", f"{file}@@1M", source, f"::{name}")
    offset = (1 + boot_mib) * MIB
    options = ["-O", "^metadata_csum,^orphan_file", "-d", tree, "-E", f"offset={offset}"]
    run("/usr/sbin/mke2fs", "-F", "-q", "-t", "ext4", *options, file, f"{spec.root_mib}M")
    return file


PACKERS = {"xz": "xz -0c", "zst": "zstd -qc", "gz": "gzip -1c", "bz2": "bzip2 -c"}


def packed(data, kind):
    """Data compressed by the program that makers of images use."""
    return subprocess.run(PACKERS[kind].split(), input=data, capture_output=True, check=True).stdout


def pack(file, kind):
    """The image compressed, beside it."""
    target = file.with_name(f"{file.name}.{kind}")
    target.write_bytes(packed(file.read_bytes(), kind))
    return target


def fit(folder, kernel, compression):
    """A fitImage with this kernel, made by the device tree compiler, as mkimage makes it."""
    (folder / "kernel").write_bytes(kernel)
    (folder / "image.its").write_text(
        '/dts-v1/; / { description = "fit"; images {'
        ' fdt-1 { data = [00 01]; type = "flat_dt"; compression = "none"; };'
        ' kernel-1 { description = "Linux"; data = /incbin/("kernel"); type = "kernel";'
        f' arch = "arm64"; os = "linux"; compression = "{compression}"; }};'
        " }; };"
    )
    run("dtc", "-q", "-I", "dts", "-O", "dtb", "-i", folder, "-o", folder / "fit", folder / "image.its")
    return (folder / "fit").read_bytes()


# Cards

USED = 0xA5
"""Every byte of a card that has been used."""
SHELL = ["sh", "-c", 'exec sh -c "$*"', "_"]
"""What ssh does with its words, without a network."""


class Image:
    """What a way needs of an image: random data at its start and end, and zeros between."""

    def __init__(self, file, size=5 * MIB + 1536):
        draw = random.Random(size)
        self.data = draw.randbytes(size // 2) + bytes(size // 4)
        self.data += draw.randbytes(size - len(self.data))
        file.write_bytes(self.data)
        self.content = self.file = file
        self.name = file.name
        self.size, self.content_sha256 = size, hashlib.sha256(self.data).hexdigest()


def used_card(file, size):
    file.write_bytes(bytes([USED]) * size)
    return file


def put(image, card, begins=lambda: None, prefix=(), spoil=None):
    """Write an image as `evmperf image show --write`; `spoil` is called before it is read back."""

    def copy(content, path):
        writer._dd(content, path)
        spoil()

    writer.write(str(card), image, begins, copy if spoil else None, prefix)


def assert_equal(card, image):
    """The image, and behind it what the card held before."""
    data = card.read_bytes()
    assert data[: image.size] == image.data
    assert set(data[image.size :]) <= {USED}


# A server


@contextlib.contextmanager
def serving(content):
    """A server of one file with an ETag, and its `checksum`; `cut` ends the next answers after so many bytes,
    and `asked` is what was asked for.
    """
    with web.serving(Handler) as server:
        server.content, server.cut, server.asked, server.sent = content, [], [], 0
        server.stalls, server.checksum = False, ""
        server.url += "/images/a.wic.zst"
        yield server


class Handler(web.Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        if server.stalls:
            time.sleep(3)
        if not self.path.endswith(".zst"):
            known = server.checksum and self.path.endswith(".sha256")
            self.say(200 if known else 404, server.checksum.encode())
            return
        tag = f'"{hashlib.sha256(server.content).hexdigest()[:8]}"'
        wanted = self.headers.get("Range")
        server.asked.append(wanted or "whole")
        if self.headers.get("If-None-Match") == tag:
            server.asked[-1] = "same"
            self.say(304)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if self.headers.get("If-Range") == tag else 0
        whole = body = server.content[start:]
        if server.cut:
            body = body[: server.cut.pop(0)]
            self.close_connection = True
        self.say(206 if start else 200, body, **{"Content-Length": len(whole), "ETag": tag})
        server.sent += len(body)
