"""A board's own disks, made from those of the image, and the boot ROM that starts from its card.

The disks outlive power cycles and the bench process, as those of a real board do; they are made anew
on request and when the image has changed.

The ROM copies the boot loader at power-on out of the card's FAT into the file that QEMU starts as
firmware. A card without one, or none at all, leaves the board silent, as it leaves a real one.
"""

import fcntl
import logging
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError
from evmperf_virtual import steps
from evmperf_virtual.image import Disk, EvmImage

_TIMEOUT = 120
_FETCH_S = 30.0
_SECTOR = 512
_log = logging.getLogger(__name__)


def prepare(image: EvmImage, board: Path, *, fresh: bool) -> dict[str, Path]:
    """The files of the board's disks by name, made anew for another image; raises LabError, leaving none."""
    folder = board / "disks"
    marker = folder / "image"
    if fresh or not marker.exists() or marker.read_text() != image.hash:
        new = board / "disks.new"
        try:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            for name in image.disks:
                _make(image, name, new)
            (new / marker.name).write_text(image.hash)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
        except OSError as error:
            raise LabError(
                f"the disks of board {board.name} cannot be made in {board}: {error}; make room or "
                f"correct the permissions there"
            ) from None
        finally:
            shutil.rmtree(new, ignore_errors=True)
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
    if disk.base is None:
        with target.open("wb") as file:
            if disk.fill:
                for _ in range(disk.mib or 0):
                    file.write(bytes([disk.fill]) * (1 << 20))
            else:
                file.truncate((disk.mib or 0) << 20)
        return
    base = str(image.directory / disk.base)
    command = ["cp", "--sparse=always", "--reflink=auto", base, str(target)]
    if disk.overlay:
        # The overlay names its base absolutely: the board's folder and the image's are not related.
        create = ["create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, str(target)]
        command = [str(Path(image.qemu).with_name("qemu-img")), *create]
    try:
        steps.output(command, _TIMEOUT)
    except LabError as error:
        raise LabError(f"disk {name} cannot be made: {error}") from None


def start_rom(rom: Mapping[str, Any], image: Path, files: Mapping[str, Path], *, inserted: bool) -> str:
    """Make the firmware of the next start; returns why it is empty, "" if it is not.

    `rom` is the recipe's section `boot_rom`: where on the card the loader is, or `own`, a loader of
    the board's own (in its flash) in the folder `image`. Raises LabError when the firmware cannot be
    written.
    """
    firmware = files[rom["firmware"]]
    reason, program = "", b""
    try:
        if "own" in rom:
            program = (image / rom["own"]).read_bytes()
        elif inserted:
            reason, program = _fetch_loader(rom, files[rom["disk"]])
        else:
            reason = "there is no card in the board"
        size = firmware.stat().st_size
        firmware.write_bytes(program[:size].ljust(size, b"\0"))
    except OSError as error:
        raise LabError(f"the boot ROM cannot read the boot loader from the card: {error}") from None
    return reason


def _fetch_loader(rom: Mapping[str, Any], card: Path) -> tuple[str, bytes]:
    with card.open("rb") as file:
        sector = file.read(_SECTOR)
    entry = sector[446 + 16 * (rom["partition"] - 1) :][:16]
    if sector[510:512] != b"\x55\xaa" or not entry[4]:
        return "the card has no partition to start from", b""
    (first,) = struct.unpack_from("<I", entry, 8)
    command = ["mcopy", "-n", "-i", f"{card}@@{first * _SECTOR}", f"::{rom['file']}", "-"]
    done = subprocess.run(command, capture_output=True, timeout=_FETCH_S, check=False)
    if done.returncode or not done.stdout:
        return f"the card has no {rom['file']}", b""
    return "", done.stdout
