"""A partition for benchmarks in free space behind a disk's partitions (`--make-scratch`, `scratch_mib`)."""

import re
from dataclasses import dataclass, field

from evmperf.measure.bench import Shell
from evmperf.model.errors import BoardError, UsageError
from evmperf.model.shelltext import ShellTexts

SECTOR = 512
"""Bytes that sysfs counts in."""
_MIB = (1 << 20) // SECTOR
_MOST_MIB, _LEAST_MIB = 2048, 64
_DRIVERS = {"MMC": "emmc", "SD": "mmcsd", None: ""}
_TIMEOUT_S = 60.0

SURVEY = ShellTexts(__file__)("survey")
"""Shell text, one line, that says the disks, what the kernel knows of their partitions and what
sfdisk reads in their tables, and writes nothing."""
_LINE = re.compile(
    r"disk: (?P<disk>mmcblk\d+|nvme\d+n\d+) (?:(?P<kind>MMC|SD) )?(?P<size>\d{1,15}) 0"
    r"|table: (?P<labelled>\w+) label: (?P<label>gpt|dos)"
    r"|table: (?P<bounded>\w+) last-lba: (?P<last>\d{1,15})"
    r"|table: (?P<grown>\w+) The backup GPT table is not on the end of the device\..*"
    r"|(?P<source>part|table): (?P<holder>\w+) /dev/\w+p(?P<number>\d{1,3}) :"
    r" start= *(?P<start>\d{1,15}), size= *(?P<sectors>\d{1,15})(?:,.*)?"
)

Extent = tuple[int, int, int]
"""A partition's number, first sector and count of sectors."""


@dataclass
class _Disk:
    """A disk: its driver and size, what its table says, and what the kernel `knows` of that; `grown` is
    a GPT whose copy is not at the end of the disk, as that of an image on a larger card."""

    driver: str
    size: int
    label: str = ""
    last: int = 0
    grown: bool = False
    entries: set[Extent] = field(default_factory=set)
    knows: set[Extent] = field(default_factory=set)


def _disks(said: str) -> dict[str, _Disk]:
    found: dict[str, _Disk] = {}
    for line in filter(None, map(_LINE.fullmatch, map(str.strip, said.splitlines()))):
        if line["disk"]:
            found[line["disk"]] = _Disk(_DRIVERS[line["kind"]], int(line["size"]))
        disk = found.get(line["labelled"] or line["bounded"] or line["grown"] or line["holder"] or "")
        if disk is None:
            continue
        disk.label = line["label"] or disk.label
        disk.last = int(line["last"] or disk.last)
        disk.grown = disk.grown or bool(line["grown"])
        if line["source"]:
            extents = disk.knows if line["source"] == "part" else disk.entries
            extents.add((int(line["number"]), int(line["start"]), int(line["sectors"])))
    return found


@dataclass(frozen=True)
class ScratchPlan:
    """A partition to be made: its disk, number, first sector and count of sectors, and the driver
    that it is for; `kept` are the partitions there, `grown` says whether GPT's copy moves.
    """

    disk: str
    driver: str
    number: int
    start: int
    sectors: int
    kept: frozenset[Extent]
    grown: bool = False

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
        moved = " sfdisk also moves the copy of the table to the end of the disk." if self.grown else ""
        return (
            f"{self.partition} of {self.sectors // _MIB} MiB would be made from MiB {self.start // _MIB} "
            f"of /dev/{self.disk} on, behind all that is there ({kept}, which stay as they are); benchmarks "
            f"overwrite it.{moved} The command: {self.command}"
        )

    @property
    def command(self) -> str:
        """What makes it; sfdisk itself refuses what is not free. The kernel is told of it where it can be."""
        words = f"{self.number}: start={self.start}, size={self.sectors}, type=L"
        disk = f"/dev/{self.disk}"
        tell = f"partx --add --nr {self.number} {disk} 2>/dev/null"
        # sfdisk's status is no answer: it fails where only the kernel cannot take a new table in use.
        return f"echo '{words}' | sfdisk --append --no-reread {disk}; {tell}"


def plan(said: str) -> ScratchPlan:
    """The largest free space at the end of a disk, from what a board replied to SURVEY.

    Raises UsageError where there is none, or nothing that makes partitions.
    """
    if not re.search(r"^tool: sfdisk\r?$", said, re.MULTILINE):
        raise UsageError(
            "the board has no sfdisk, which makes the partition: install it (util-linux), or make the "
            "partition on another machine and name it as `scratch` in the board file"
        )
    disks = _disks(said).items()
    found = [plan for name, disk in disks if disk.driver and (plan := _behind(name, disk))]
    if not found:
        raise UsageError(
            f"no eMMC or SD card of the board has {_LEAST_MIB} MiB free behind its partitions and a number "
            f"left in its table (an MBR has four): shrink the last one, or name another partition as "
            f"`scratch` in the board file"
        )
    return max(found, key=lambda one: one.sectors)


def made(shell: Shell, root: str, mib: int) -> str:
    """The device of a partition of `mib` MiB behind the image's on the disk of `root`, made if needed; raises
    BoardError.
    """
    name = re.sub(r"p?\d+$", "", root.removeprefix("/dev/"))
    disk = _disks(shell.run(SURVEY, _TIMEOUT_S).text).get(name, _Disk("", 0))
    # The image's last partition is its root: what is behind that is the lab's.
    _, number, sectors = max(((start, n, count) for n, start, count in disk.knows), default=(0, 0, 0))
    last = f"/dev/{name}p{number}"
    if last != root and sectors >= mib * _MIB:
        return last
    new = _behind(name, disk, mib, mib)
    if new is None:
        raise BoardError(
            f"no scratch partition of {mib} MiB can be made on /dev/{name}: it takes sfdisk on the board, "
            f"room behind the last partition, and a number left in the table"
        )
    printed = shell.run(f"{{ {new.command}; }} 2>&1", _TIMEOUT_S).text
    if remark := check(new, shell.run(SURVEY, _TIMEOUT_S).text, printed):
        raise BoardError(remark)
    return new.partition


def _behind(name: str, disk: _Disk, least: int = _LEAST_MIB, most: int = _MOST_MIB) -> ScratchPlan | None:
    """The partition behind all of a disk, of so many MiB; None without room, a number, or a table."""
    used = {number for number, _, _ in disk.entries}
    numbers = range(1, 5) if disk.label == "dos" else range(max(used, default=0) + 1, 129)
    number = next((n for n in numbers if n not in used), 0)
    if not (disk.label and used and number):
        return None
    start = -(-max(first + count for _, first, count in disk.entries) // _MIB) * _MIB
    # The last MiB has GPT's copy, or may get it.
    end = disk.last + 1 if disk.last and not disk.grown else disk.size - _MIB
    sectors = min((end - start) // _MIB, most) * _MIB
    if sectors < least * _MIB:
        return None
    return ScratchPlan(name, disk.driver, number, start, sectors, frozenset(disk.entries), disk.grown)


def check(plan: ScratchPlan, said: str, printed: str) -> str:
    """Whether the board's table has the partition (`said` to SURVEY) as planned, and the others as before.

    Returns a remark, "" where the kernel knows it already; `printed` is what the command said. Raises
    BoardError where the table is any other.
    """
    now = _disks(said).get(plan.disk, _Disk("", 0))
    new = (plan.number, plan.start, plan.sectors)
    if now.entries == plan.kept | {new}:
        remark = f"the board's kernel shows {plan.partition} after its next boot: reboot it, then --lg-env"
        return "" if new in now.knows else remark
    last = " ".join(printed.strip().splitlines()[-4:])[:300]
    raise BoardError(f"{plan.partition} was not made as planned: {last or 'sfdisk printed nothing'}")
