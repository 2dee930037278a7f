"""A partition for benchmarks in free space behind a disk's partitions: the checked command for a person, and
the partition when it is there (`evmperf desk` shows both). evmperf itself writes no table.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from evmperf.model.errors import UsageError
from evmperf.model.shelltext import ShellTexts

SECTOR = 512
"""Bytes that sysfs counts in."""
_MIB = (1 << 20) // SECTOR
_MOST, _LEAST = 2048 * _MIB, 64 * _MIB
"""Sectors of a scratch partition."""
_DRIVERS = {"MMC": "emmc", "SD": "mmcsd"}
_NAME, _RAW = "evmperf", "da"
"""How a partition made by our command is known: its name in a GPT; in an MBR its type, data without a file
system, behind all others."""
_EXTENDED = ("5", "f", "85")

SURVEY = ShellTexts(__file__)("survey")
"""Shell text, one line, that says the disks, what the kernel knows of their partitions and what
sfdisk reads in their tables, and writes nothing."""
_DISK = re.compile(r"(mmcblk\d+) (MMC|SD) (\d{1,15}) 0\n")
_ROW = re.compile(
    r"^(?P<source>part|table): \w+ /dev/\w+p(?P<number>\d{1,3}) :"
    r" start= *(?P<start>\d{1,15}), size= *(?P<sectors>\d{1,15})"
    r'(?:, type=(?P<type>[\w-]+)(?:, uuid=[\w-]+)?(?:, name="(?P<name>[^"\n]*)")?.*)?$',
    re.MULTILINE,
)
_GROWN = "The backup GPT table is not on the end of the device."


class Extent(NamedTuple):
    """A partition: its first sector, its count of sectors, and its number."""

    start: int
    sectors: int
    number: int


class _Disk:
    """A disk of a survey: its driver and size in sectors, what its table says, and the partition that is
    `ours`; `grown` is a GPT whose copy is not at the end of the disk, as that of an image on a larger card,
    `differences` are the extents that only the table or only the kernel has.
    """

    def __init__(self, head: re.Match[str], text: str) -> None:
        self.name, self.driver, self.size = head[1], _DRIVERS[head[2]], int(head[3])
        self.label, last = _said(r" label: (gpt|dos)$", text), _said(r" last-lba: (\d{1,15})$", text)
        self.grown = _GROWN in text
        # The last MiB has GPT's copy, or may get it.
        self.end = int(last) + 1 if last and not self.grown else self.size - _MIB
        # Other sectors than sysfs counts in, which no eMMC or card has, or LVM or RAID built on it.
        self.is_foreign = _said(r" sector-size: (\d+)$", text) not in ("", "512") or "\nheld: " in text
        uses, shown, self.entries, self.ours = set(), set(), list[Extent](), list[Extent]()
        for row in _ROW.finditer(text):
            extent = Extent(int(row["start"]), int(row["sectors"]), int(row["number"]))
            if row["source"] == "part":
                uses.add(extent)
                continue
            self.entries.append(extent)
            # The kernel shows two sectors of what holds others, so that nobody formats it.
            extended = self.label == "dos" and row["type"] in _EXTENDED
            shown.add(extent._replace(sectors=2) if extended else extent)
            if row["name"] == _NAME or (self.label == "dos" and row["type"] == _RAW):
                self.ours.append(extent)
        sides = (("the kernel uses", uses - shown), ("the table has", shown - uses))
        self.differences = [
            f"{side} p{one.number} (sectors {one.start} to {one.start + one.sectors - 1})"
            for side, only in sides
            for one in sorted(only)
        ]

    def agreed(self) -> None:
        """Raise UsageError where the kernel uses other partitions than the table has."""
        if self.differences:
            raise UsageError(
                f"/dev/{self.name}: the table and the kernel do not agree: {', '.join(self.differences)}. "
                f"What the kernel uses may hold data: put the table right, or reboot the board, and try again"
            )

    def behind(self) -> "ScratchPartition | None":
        """The partition behind all others; None without room, a number, or a table."""
        used = {one.number for one in self.entries}
        numbers = range(1, 5) if self.label == "dos" else range(max(used, default=0) + 1, 129)
        number = next((n for n in numbers if n not in used), 0)
        if self.is_foreign or self.differences or not (self.label and used and number):
            return None
        start = -(-max(one.start + one.sectors for one in self.entries) // _MIB) * _MIB
        sectors = min((self.end - start) // _MIB * _MIB, _MOST)
        return ScratchPartition(self, Extent(start, sectors, number)) if sectors >= _LEAST else None


@dataclass(frozen=True)
class ScratchPartition:
    """A partition for benchmarks on a disk."""

    disk: _Disk
    extent: Extent

    @property
    def device(self) -> str:
        """Its device."""
        return f"/dev/{self.disk.name}p{self.extent.number}"

    @property
    def mib(self) -> int:
        """Its size."""
        return self.extent.sectors // _MIB

    @property
    def command(self) -> str:
        """What makes it, on the board as root: sfdisk refuses what its table does not call free, the test
        before it what the kernel uses; the kernel is told of it where it can be.
        """
        number, disk = self.extent.number, f"/dev/{self.disk.name}"
        kind = f"type=L, name={_NAME}" if self.disk.label == "gpt" else f"type={_RAW}"
        entry = f"{number}: start={self.extent.start}, size={self.extent.sectors}, {kind}"
        # sfdisk's status is no answer: it fails where only the kernel cannot take a new table in use.
        return (
            f"[ ! -e /sys/class/block/{self.disk.name}p{number} ] && echo '{entry}' | sfdisk --append "
            f"--no-reread {disk}; partx --add --nr {number} {disk}"
        )

    @property
    def proposal(self) -> str:
        """What a person does to get it."""
        moved = " sfdisk also moves the copy of the table to the end of the disk." if self.disk.grown else ""
        return (
            f"{self.device} of {self.mib} MiB has room behind all partitions, from MiB "
            f"{self.extent.start // _MIB} of /dev/{self.disk.name} on.{moved} evmperf writes no partition "
            f"table; as root on the board:\n  {self.command}\nThen run this again; where the kernel shows "
            f"the partition only after its next boot, reboot the board first."
        )


def present(survey: str) -> ScratchPartition | None:
    """The partition that our command made, from what a board replied to SURVEY; None without one.

    Raises UsageError where the kernel has another extent of it than the table.
    """
    for disk in _disks(survey):
        ours = disk.ours if disk.label == "gpt" else [one for one in disk.ours if one == max(disk.entries)]
        if ours and not disk.is_foreign:
            disk.agreed()
            return ScratchPartition(disk, ours[-1])
    return None


def plan(survey: str) -> ScratchPartition:
    """The largest free space at the end of an eMMC or SD card, from what a board replied to SURVEY.

    Raises UsageError where there is none, where the kernel uses other partitions than the table has, or
    without sfdisk, which reads the tables.
    """
    if not re.search(r"^tool: sfdisk$", survey.replace("\r", ""), re.MULTILINE):
        raise UsageError(
            "the board has no sfdisk, which reads and makes partitions: install it (util-linux), or make the "
            "partition on another machine and name it as `scratch` in the board file"
        )
    disks = _disks(survey)
    plans = [plan for disk in disks if (plan := disk.behind())]
    if not plans:
        for disk in disks:
            disk.agreed()
        raise UsageError(
            f"no eMMC or SD card of the board has {_LEAST // _MIB} MiB free behind its partitions and a "
            f"number left in its table (an MBR has four): shrink the last one, or name another partition as "
            f"`scratch` in the board file"
        )
    return max(plans, key=lambda one: one.extent.sectors)


def _disks(survey: str) -> list[_Disk]:
    blocks = re.split(r"^disk: ", survey.replace("\r", ""), flags=re.MULTILINE)[1:]
    return [_Disk(head, block) for block in blocks if (head := _DISK.match(block))]


def _said(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""
