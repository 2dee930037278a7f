"""Folders in memory, for the disks of virtual boards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SHARED = Path("/dev/shm")


@contextmanager
def folder(otherwise: Path, mib: int) -> Iterator[Path]:
    """A new folder in memory where there is room for so many MiB; else the one on disk.

    QEMU stands still while the host's disk does not take what it writes. With a disk that others
    keep busy that was half a minute, and Linux in it called that a stall of its processor.
    """
    if not _SHARED.is_dir() or shutil.disk_usage(_SHARED).free < mib << 20:
        otherwise.mkdir(parents=True, exist_ok=True)
        yield otherwise
        return
    with tempfile.TemporaryDirectory(prefix="evmperf-", dir=_SHARED) as name:
        yield Path(name)
