"""The partition table of an image or a medium, read by util-linux's sfdisk."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evmperf.model.errors import LabError, UsageError

_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Partition:
    """One partition: `start` and `size` in bytes; `uuid` is what PARTUUID= calls it."""

    number: int
    start: int
    size: int
    type: str
    uuid: str
    name: str = ""


@dataclass(frozen=True)
class PartitionTable:
    """A partition table: `label` is dos or gpt, `id` the disk's: 8 hex digits, or a UUID."""

    label: str
    id: str
    partitions: tuple[Partition, ...]

    @property
    def end(self) -> int:
        """The first byte behind the last partition."""
        return max((p.start + p.size for p in self.partitions), default=0)


def read(file: Path) -> PartitionTable:
    """The table of a disk or an image of one; raises UsageError for a file that has none."""
    done = subprocess.run(
        [program("sfdisk", "fdisk"), "--json", str(file)],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    try:
        return parse(done.stdout)
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or ["sfdisk finds none"])[-1]
        raise UsageError(f"{file} has no partition table ({said}): it is no image of a whole disk") from None


def parse(text: str) -> PartitionTable:
    """Read `sfdisk --json`; raises ValueError, KeyError or TypeError for anything else."""
    data: dict[str, Any] = json.loads(text)["partitiontable"]
    label, sector = str(data["label"]), int(data.get("sectorsize", 512))
    disk = str(data["id"]).removeprefix("0x").lower()
    found = []
    for entry in data.get("partitions", []):
        # "FILE1", "/dev/mmcblk1p2": the number is what the name ends with.
        number = int(entry["node"][len(entry["node"].rstrip("0123456789")) :])
        uuid = str(entry["uuid"]).lower() if "uuid" in entry else f"{disk}-{number:02x}"
        found.append(
            Partition(
                number=number,
                start=int(entry["start"]) * sector,
                size=int(entry["size"]) * sector,
                type=str(entry["type"]).lower(),
                uuid=uuid,
                name=str(entry.get("name", "")),
            )
        )
    return PartitionTable(label, disk, tuple(found))


def program(name: str, package: str) -> str:
    """The path of a host's program, also in sbin; raises LabError that names its package."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise LabError(f"this host lacks {name}, which reads images: install the package {package}")
    return found
