"""A partition for benchmarks in the free space behind a disk's partitions (`--make-scratch`)."""

import re
from dataclasses import dataclass

from evmperf.model.errors import BoardError, UsageError

SECTOR = 512
"""Bytes that sysfs counts in."""
_MIB = (1 << 20) // SECTOR
_MOST_MIB, _LEAST_MIB = 2048, 64
_DRIVERS = {"MMC": "emmc", "SD": "mmcsd"}

SURVEY = (
    "{ for b in /sys/block/mmcblk*; do n=${b##*/}; case $n in *boot*|*rpmb*) continue;; esac;"
    " echo disk: $n $(cat $b/device/type $b/size $b/ro);"
    " for p in $b/$n*p*; do echo part: $n ${p##*/} $(cat $p/start $p/size); done; done;"
    " command -v sfdisk >/dev/null && echo tool: sfdisk; } 2>/dev/null"
)
"""Shell text, one line, that says the disks and their partitions and writes nothing."""
_DISK = re.compile(r"disk: (mmcblk\d+) (MMC|SD) (\d{1,15}) 0")
_PART = re.compile(r"part: (mmcblk\d+) mmcblk\d+p(\d{1,3}) (\d{1,15}) (\d{1,15})")


@dataclass(frozen=True)
class ScratchPlan:
    """A partition to be made: its disk, number, first sector and count of sectors, and the driver
    that it is for; `kept` are numbers, first sectors and counts of the partitions there.
    """

    disk: str
    driver: str
    number: int
    start: int
    sectors: int
    kept: frozenset[tuple[int, int, int]]

    @property
    def partition(self) -> str:
        """Its device."""
        return f"/dev/{self.disk}p{self.number}"

    @property
    def section(self) -> dict[str, str]:
        """What the board file says of it."""
        return {"device": f"/dev/{self.disk}", "scratch": self.partition}

    def __str__(self) -> str:
        kept = ", ".join(f"p{number}" for number, _, _ in sorted(self.kept))
        return (
            f"{self.partition} of {self.sectors // _MIB} MiB would be made from MiB {self.start // _MIB} "
            f"of /dev/{self.disk} on, behind all that is there ({kept}, which stay as they are); benchmarks "
            f"overwrite it. The command: {self.command}"
        )

    @property
    def command(self) -> str:
        """What makes it; sfdisk itself refuses what is not free."""
        words = f"start={self.start}, size={self.sectors}, type=L"
        return f"echo '{words}' | sfdisk --append --no-reread /dev/{self.disk}"


def plan(said: str) -> ScratchPlan:
    """The largest free space at the end of a disk, from what a board replied to SURVEY.

    Raises UsageError where there is none, or nothing that makes partitions.
    """
    disks: dict[str, tuple[str, int]] = {}
    parts: dict[str, set[tuple[int, int, int]]] = {}
    for line in map(str.strip, said.splitlines()):
        if match := _DISK.fullmatch(line):
            disks[match[1]] = (_DRIVERS[match[2]], int(match[3]))
        elif match := _PART.fullmatch(line):
            parts.setdefault(match[1], set()).add((int(match[2]), int(match[3]), int(match[4])))
    found: list[ScratchPlan] = []
    for disk, (driver, size) in disks.items():
        if not (there := parts.get(disk)):
            continue  # without a partition table all of the disk may be in use
        start = -(-max(first + count for _, first, count in there) // _MIB) * _MIB
        sectors = min((size - start) // _MIB - 1, _MOST_MIB) * _MIB  # the last MiB has GPT's copy
        number = max(number for number, _, _ in there) + 1
        if sectors >= _LEAST_MIB * _MIB:
            found.append(ScratchPlan(disk, driver, number, start, sectors, frozenset(there)))
    if not found:
        raise UsageError(
            f"no eMMC or SD card of the board has {_LEAST_MIB} MiB free behind its partitions: shrink the "
            f"last one, or name another partition as `scratch` in the board file"
        )
    if not re.search(r"^tool: sfdisk\r?$", said, re.MULTILINE):
        raise UsageError(
            "the board has no sfdisk, which makes the partition: install it (util-linux), or make the "
            "partition on another machine and name it as `scratch` in the board file"
        )
    return max(found, key=lambda one: one.sectors)


def check(made: ScratchPlan, said: str, printed: str) -> str:
    """Whether the board shows the partition (`said` to SURVEY) as planned, and the others as before.

    Returns a remark, "" where the kernel knows it already; `printed` is what the command said. Raises
    BoardError where the command failed or the board shows anything else.
    """
    last = " ".join(printed.strip().splitlines()[-1:])[:200]
    now = {
        (int(match[2]), int(match[3]), int(match[4]))
        for line in map(str.strip, said.splitlines())
        if (match := _PART.fullmatch(line)) and match[1] == made.disk
    }
    if now == made.kept | {(made.number, made.start, made.sectors)}:
        return ""
    if now == made.kept and "evmperf-status 0" in printed:
        return f"the board's kernel shows {made.partition} after its next boot: reboot it, then --lg-env"
    raise BoardError(f"{made.partition} was not made as planned: {last or 'sfdisk printed nothing'}")
