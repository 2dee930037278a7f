"""A board's own disks, made from those of the image.

They outlive power cycles and the bench process, as those of a real board do; they are made anew
on request and when the image has changed.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import struct
from pathlib import Path

from evmperf.model.errors import LabError
from evmperf.virtual import steps
from evmperf.virtual.image import Disk, EvmImage

_TIMEOUT = 120
_log = logging.getLogger(__name__)


def prepare(image: EvmImage, board: Path, *, fresh: bool) -> dict[str, Path]:
    """Make the board's disks if there are none of this image; returns their files by name.

    Raises LabError if that fails (disk full, no such base image); then no half-made disks stay.
    """
    folder = board / "disks"
    marker = {"image": image.hash, "variant": image.variant, "disks": sorted(image.disks)}
    if fresh or _marker(folder) != marker:
        new = board / "disks.new"
        try:
            _remove(new)
            new.mkdir(parents=True)
            for name in image.disks:
                _make(image, name, new)
            (new / "image.json").write_text(json.dumps(marker) + "\n")
            _remove(folder)
            new.rename(folder)
        except OSError as error:
            shutil.rmtree(new, ignore_errors=True)
            raise LabError(
                f"the disks of board {board.name} cannot be made in {board}: {error}; make room or "
                f"correct the permissions there"
            ) from None
        except LabError:
            shutil.rmtree(new, ignore_errors=True)
            raise
        _log.info("made new disks for image %s %s", image.variant, image.hash)
    return {name: folder / _file(name, disk) for name, disk in image.disks.items()}


def in_use(path: Path) -> bool:
    """Whether some QEMU has the disk open, be it only the last writes of one that is gone.

    A killed QEMU's requests to io_uring may end after it; until then its locks on the file stay.
    """
    # Where QEMU keeps its locks: bytes 100 and 200 and those behind, one for each permission.
    request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 100, 200, 0)
    with path.open("r+b") as file:
        try:
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
        except BlockingIOError:
            return True
    return False


def _file(name: str, disk: Disk) -> str:
    return f"{name}.qcow2" if disk.overlay else f"{name}.img"


def _make(image: EvmImage, name: str, folder: Path) -> None:
    disk = image.disks[name]
    target = folder / _file(name, disk)
    if disk.base and disk.overlay:
        base = image.directory / disk.base
        # The overlay names its base absolutely: the board's folder and the image's are not related.
        create = ["create", "-q", "-f", "qcow2", "-F", disk.format, "-b", str(base), str(target)]
        _run([*image.qemu.img, *create], name, image.qemu.env)
    elif disk.base:
        base = image.directory / disk.base
        _run(["cp", "--sparse=always", "--reflink=auto", str(base), str(target)], name)
    else:
        with target.open("wb") as file:
            if disk.fill:
                for _ in range(disk.mib or 0):
                    file.write(bytes([disk.fill]) * (1 << 20))
            else:
                file.truncate((disk.mib or 0) << 20)


def _run(command: list[str], disk: str, env: dict[str, str] | None = None) -> None:
    try:
        steps.output(command, _TIMEOUT, env=env)
    except LabError as error:
        raise LabError(f"disk {disk} cannot be made: {error}") from None


def _marker(folder: Path) -> object:
    try:
        return json.loads((folder / "image.json").read_text())
    except (OSError, ValueError):
        return None


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
