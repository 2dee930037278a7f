"""A partition for benchmarks in free space behind a disk's partitions: the checked command for a person, and
the partition when it is there (`evmperf desk` shows both). evmperf itself writes no table.
"""

import re
from dataclasses import dataclass, field

from evmperf.boards.board import Board
from evmperf.measure.bench import Shell
from evmperf.model.errors import UsageError
from evmperf.model.shelltext import ShellTexts

SECTOR = 512
"""Bytes that sysfs counts in."""
_MIB = (1 << 20) // SECTOR
_MOST_MIB, _LEAST_MIB = 2048, 64
_DRIVERS = {"MMC": "emmc", "SD": "mmcsd", None: ""}
_NAME, _RAW = "evmperf", "da"
"""How a partition made by our command is known: its name in a GPT; in an MBR its type, data without a file
system, behind all others."""
_TIMEOUT_S = 60.0
_EXTENDED = ("5", "f", "85")

SURVEY = ShellTexts(__file__)("survey")
"""Shell text, one line, that says the disks, what the kernel knows of their partitions and what
sfdisk reads in their tables, and writes nothing."""
_LINE = re.compile(
    r"disk: (?P<disk>mmcblk\d+|nvme\d+n\d+) (?:(?P<kind>MMC|SD) )?(?P<size>\d{1,15}) 0"
    r"|held: (?P<held>\w+)"
    r"|table: (?P<coarse>\w+) sector-size: (?!512$)\d+"
    r"|table: (?P<labelled>\w+) label: (?P<label>gpt|dos)"
    r"|table: (?P<bounded>\w+) last-lba: (?P<last>\d{1,15})"
    r"|table: (?P<grown>\w+) The backup GPT table is not on the end of the device\..*"
    r"|(?P<source>part|table): (?P<holder>\w+) /dev/\w+p(?P<number>\d{1,3}) :"
    r" start= *(?P<start>\d{1,15}), size= *(?P<sectors>\d{1,15})"
    r'(?:, type=(?P<type>[\w-]+)(?:, uuid=[\w-]+)?(?:, name="(?P<name>[^"]*)")?.*)?'
)


@dataclass(frozen=True, order=True)
class Extent:
    """A partition: its first sector, its count of sectors, and its number."""

    start: int
    sectors: int
    number: int

    def __str__(self) -> str:
        return f"p{self.number} (sectors {self.start} to {self.start + self.sectors - 1})"


@dataclass
class _Disk:
    """A disk: its driver and size in sectors, what its table says, what the kernel `uses` of that, and the
    partition that is `ours`; `grown` is a GPT whose copy is not at the end of the disk, as that of an image
    on a larger card, `held` a disk on which other devices (LVM, RAID) are built.
    """

    name: str
    driver: str
    size: int
    label: str = ""
    last: int = 0
    grown: bool = False
    held: bool = False
    entries: set[Extent] = field(default_factory=set)
    uses: set[Extent] = field(default_factory=set)
    ours: Extent | None = None

    @property
    def disagreement(self) -> str:
        """Where the table and the kernel do not agree; "" if they do, entry by entry."""
        sources = ((self.uses - self.entries, "the kernel uses"), (self.entries - self.uses, "the table has"))
        return ", ".join(f"{side} {', '.join(map(str, sorted(only)))}" for only, side in sources if only)


def _disks(survey: str) -> list[_Disk]:
    disks: dict[str, _Disk] = {}
    for line in filter(None, map(_LINE.fullmatch, map(str.strip, survey.splitlines()))):
        if name := line["disk"]:
            disks[name] = _Disk(name, _DRIVERS[line["kind"]], int(line["size"]))
        # Other sectors than sysfs counts in; no eMMC or card has them.
        disks.pop(line["coarse"] or "", None)
        names = (line[group] for group in ("held", "labelled", "bounded", "grown", "holder"))
        disk = disks.get(next(filter(None, names), ""))
        if disk is None:
            continue
        disk.held = disk.held or bool(line["held"])
        disk.label = line["label"] or disk.label
        disk.last = int(line["last"] or disk.last)
        disk.grown = disk.grown or bool(line["grown"])
        if line["source"]:
            extent = Extent(int(line["start"]), int(line["sectors"]), int(line["number"]))
            if line["source"] == "part":
                disk.uses.add(extent)
                continue
            if disk.label == "dos" and line["type"] in _EXTENDED:
                # The kernel shows two sectors of it, so that nobody formats what holds others.
                shown = next((one for one in disk.uses if one.number == extent.number), extent)
                disk.uses -= {shown} if shown.start == extent.start else set()
                disk.uses |= {extent} if shown.start == extent.start else set()
            disk.entries.add(extent)
            if line["name"] == _NAME or (disk.label == "dos" and line["type"] == _RAW):
                disk.ours = extent
    return list(disks.values())


@dataclass(frozen=True)
class ScratchPartition:
    """A partition for benchmarks on a disk: its extent and the driver that it is for; `label` is the kind of
    the disk's table (gpt, dos), `grown` says whether GPT's copy moves when it is made.
    """

    disk: str
    driver: str
    extent: Extent
    label: str
    grown: bool = False

    @property
    def device(self) -> str:
        """Its device."""
        return f"/dev/{self.disk}p{self.extent.number}"

    @property
    def mib(self) -> int:
        """Its size."""
        return self.extent.sectors // _MIB

    @property
    def section(self) -> dict[str, str]:
        """What the board file says of it."""
        return {"device": f"/dev/{self.disk}", "scratch": self.device}

    @property
    def command(self) -> str:
        """What makes it, on the board as root: sfdisk refuses what its table does not call free, the test
        before it what the kernel uses; the kernel is told of it where it can be.
        """
        number, disk = self.extent.number, f"/dev/{self.disk}"
        kind = f"type=L, name={_NAME}" if self.label == "gpt" else f"type={_RAW}"
        entry = f"{number}: start={self.extent.start}, size={self.extent.sectors}, {kind}"
        # sfdisk's status is no answer: it fails where only the kernel cannot take a new table in use.
        return (
            f"[ ! -e /sys/class/block/{self.disk}p{number} ] && echo '{entry}' | sfdisk --append --no-reread "
            f"{disk}; partx --add --nr {number} {disk}"
        )

    @property
    def proposal(self) -> str:
        """What a person does to get it."""
        moved = " sfdisk also moves the copy of the table to the end of the disk." if self.grown else ""
        return (
            f"{self.device} of {self.mib} MiB has room behind all partitions, from MiB "
            f"{self.extent.start // _MIB} of /dev/{self.disk} on.{moved} evmperf writes no partition table; "
            f"as root on the board:\n  {self.command}\nThen run this again; where the kernel shows the "
            f"partition only after its next boot, reboot the board first."
        )


def present(survey: str) -> ScratchPartition | None:
    """The partition that our command made, from what a board replied to SURVEY; None without one.

    Raises UsageError where the kernel has another extent of it than the table.
    """
    for disk in _disks(survey):
        last = max(disk.entries, default=None)
        if disk.driver and disk.ours and (disk.label == "gpt" or disk.ours == last):
            _agreed(disk)
            return ScratchPartition(disk.name, disk.driver, disk.ours, disk.label)
    return None


def plan(survey: str, on: str = "") -> ScratchPartition:
    """The largest free space at the end of a disk (of `on`, a name), from what a board replied to SURVEY.

    Raises UsageError where there is none, where the kernel uses other partitions than the table has, or
    without sfdisk, which reads the tables.
    """
    if not re.search(r"^tool: sfdisk\r?$", survey, re.MULTILINE):
        raise UsageError(
            "the board has no sfdisk, which reads and makes partitions: install it (util-linux), or make the "
            "partition on another machine and name it as `scratch` in the board file"
        )
    disks = [disk for disk in _disks(survey) if disk.name == on or (not on and disk.driver)]
    plans = [plan for disk in disks if not disk.disagreement and (plan := _behind(disk))]
    if not plans:
        for disk in disks:
            _agreed(disk)
        raise UsageError(
            f"no eMMC or SD card of the board has {_LEAST_MIB} MiB free behind its partitions and a number "
            f"left in its table (an MBR has four): shrink the last one, or name another partition as "
            f"`scratch` in the board file"
        )
    return max(plans, key=lambda one: one.extent.sectors)


def removed(shell: Shell, board: Board, root: str) -> str:
    """What to do about a scratch partition of the board file on the disk of `root` that is not there, as
    after a whole image; "" if all are.
    """
    name = re.sub(r"p?\d+$", "", root.removeprefix("/dev/"))
    devices = {str(section.get("scratch", "")) for section in board.sections.values()}
    gone = sorted(one for one in devices if re.fullmatch(rf"/dev/{re.escape(name)}p\d+", one))
    survey = shell.run(SURVEY, _TIMEOUT_S).text if gone else ""
    gone = [one for one in gone if not re.search(rf"^part: {name} {one} :", survey, re.MULTILINE)]
    if not gone:
        return ""
    try:
        remedy = plan(survey, name).proposal
    except UsageError as error:
        remedy = str(error)
    return f"{', '.join(gone)}, the board file's scratch, is not on the medium: {remedy}"


def _agreed(disk: _Disk) -> None:
    if disk.disagreement:
        raise UsageError(
            f"/dev/{disk.name}: the table and the kernel do not agree: {disk.disagreement}. What the kernel "
            f"uses may hold data: put the table right, or reboot the board, and try again"
        )


def _behind(disk: _Disk) -> ScratchPartition | None:
    """The partition behind all of a disk; None without room, a number, or a table."""
    used = {one.number for one in disk.entries}
    numbers = range(1, 5) if disk.label == "dos" else range(max(used, default=0) + 1, 129)
    number = next((n for n in numbers if n not in used), 0)
    if not (disk.label and used and number) or disk.held:
        return None
    start = -(-max(one.start + one.sectors for one in disk.entries) // _MIB) * _MIB
    # The last MiB has GPT's copy, or may get it.
    end = disk.last + 1 if disk.last and not disk.grown else disk.size - _MIB
    sectors = min((end - start) // _MIB, _MOST_MIB) * _MIB
    if sectors < _LEAST_MIB * _MIB:
        return None
    return ScratchPartition(disk.name, disk.driver, Extent(start, sectors, number), disk.label, disk.grown)
