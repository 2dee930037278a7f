"""Writing an image to a used card, with proof: against dd and bmaptool, each with theirs.

The card is a loop device that goes past the page cache. Used: every byte of it is 0xA5, or it holds
another image of the same kind.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evmperf.lab.provision import content, writer
from evmperf.lab.provision.ways import Host
from evmperf.lab.provision.writer import Content
from selftests.instruments.speed.figures import Row, ratio

_MIB = 1 << 20
_IMAGE_MIB = 384
_DATA_SHARE = 0.6
"""Of an image's mebibytes, so many hold data: as in a root file system with some room."""
_ROUNDS = 5


def write() -> list[Row]:
    """Seconds for writing and proving, side by side, in turn."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        image, card = _image(folder / "image"), folder / "card"
        _use(card)
        attach = ["losetup", "--find", "--show", "--direct-io=on", str(card)]
        device = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
        try:
            return _rows(image, device)
        finally:
            subprocess.run(["losetup", "--detach", device], check=True)


def _rows(image: Path, device: str) -> list[Row]:
    size = image.stat().st_size
    about = Content(size, content.unpack(image, None).content, "image")
    create = ["bmaptool", "-q", "create", "-o", f"{image}.bmap", str(image)]
    subprocess.run(create, check=True)

    def ours() -> None:
        Host().put(device, writer.chunks_of(str(image), size), about, lambda *_: None)

    def dd() -> None:
        out = ["oflag=direct", "conv=fdatasync", "status=none"]
        subprocess.run(["dd", f"if={image}", f"of={device}", "bs=4M", *out], check=True)
        _forget(device)
        back = f"dd if={device} bs=4M iflag=direct,count_bytes count={size} status=none | sha256sum"
        subprocess.run(["sh", "-c", back], check=True, stdout=subprocess.DEVNULL)

    def bmap() -> None:
        subprocess.run(["bmaptool", "-q", "copy", str(image), device], check=True)
        _forget(device)
        verify = ["bmaptool", "-q", "copy", "--bmap", f"{image}.bmap", device, "/dev/null"]
        subprocess.run(verify, check=True)

    times: dict[str, list[float]] = {name: [] for name in ("ours", "again", "dd", "bmap")}
    for _ in range(_ROUNDS):
        for name, action in (("dd", dd), ("bmap", bmap), ("ours", ours)):
            _use(Path(device))
            times[name].append(_seconds(device, action))
        times["again"].append(_seconds(device, ours))
    return [
        ratio("image written and read back / dd and sha256sum", times["ours"], times["dd"], 1),
        ratio("image written and read back / bmaptool twice", times["ours"], times["bmap"], 1.2),
        ratio("the same image again, all read / the first time", times["again"], times["ours"], 1),
    ]


def _seconds(device: str, action: Callable[[], None]) -> float:
    _forget(device)
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _image(file: Path) -> Path:
    draw = random.Random(1)
    with file.open("wb") as disk:
        disk.truncate(_IMAGE_MIB * _MIB)
        for number in range(_IMAGE_MIB):
            if number == 0 or draw.random() < _DATA_SHARE:
                disk.seek(number * _MIB)
                disk.write(draw.randbytes(_MIB))
    return file


def _use(card: Path) -> None:
    """Make it a card that was full of something else."""
    with card.open("wb" if not card.exists() else "r+b") as disk:
        for _ in range(_IMAGE_MIB + 16):
            disk.write(b"\xa5" * _MIB)
        os.fsync(disk.fileno())


def _forget(device: str) -> None:
    subprocess.run(["blockdev", "--flushbufs", device], check=True)
