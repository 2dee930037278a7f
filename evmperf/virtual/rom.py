"""The boot ROM of a virtual board that starts from its card: it fetches the boot loader there.

At power-on the loader is copied out of the card's FAT into the file that QEMU starts as firmware. A
card without one, or none at all, leaves the board silent, as it leaves a real one.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError
from evmperf.virtual.steps import tool

_SECTOR = 512
_TIMEOUT_S = 30.0


def start(
    rom: Mapping[str, Any], image: Path, files: Mapping[str, Path], *, inserted: bool, loader: str
) -> str:
    """Make the firmware of the next start; returns why it is empty, "" if it is not.

    `rom` is the recipe's section `boot_rom`: where on the card the loader is, or `own`, a loader of
    the board's own (in its flash) in the folder `image`. `loader` is a file that is started in
    place of these: what a board does whose boot-mode switches say another medium. Raises LabError
    when the firmware cannot be written.
    """
    firmware = files[rom["firmware"]]
    reason, program = "", b""
    try:
        if loader or "own" in rom:
            program = (Path(loader) if loader else image / rom["own"]).read_bytes()
        elif inserted:
            reason, program = _fetch(rom, files[rom["disk"]])
        else:
            reason = "there is no card in the board"
        size = firmware.stat().st_size
        firmware.write_bytes(program[:size].ljust(size, b"\0"))
    except OSError as error:
        raise LabError(
            f"the boot ROM cannot read {loader or 'the boot loader from the card'}: {error}"
        ) from None
    return reason


def _fetch(rom: Mapping[str, Any], card: Path) -> tuple[str, bytes]:
    with card.open("rb") as file:
        sector = file.read(_SECTOR)
    entry = sector[446 + 16 * (rom["partition"] - 1) :][:16]
    if sector[510:512] != b"\x55\xaa" or not entry[4]:
        return "the card has no partition to start from", b""
    (first,) = struct.unpack_from("<I", entry, 8)
    command = [tool("mcopy"), "-n", "-i", f"{card}@@{first * _SECTOR}", f"::{rom['file']}", "-"]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode or not done.stdout:
        return f"the card has no {rom['file']}", b""
    return "", done.stdout
