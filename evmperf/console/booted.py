"""What booted: the kernel's command line and its root, from the console or asked of the system."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evmperf.model.errors import BoardError, Kind

QUESTION = (
    "[ -e /proc/cmdline ] || mount -t proc proc /proc; "
    "[ -e /sys/block ] || mount -t sysfs sysfs /sys; "
    "echo cmdline: $(cat /proc/cmdline); "
    'while read -r a b c d e f; do [ "$e" = / ] && r=$c; done </proc/self/mountinfo; '
    "echo root: $(readlink /sys/dev/block/$r); "
    "echo type: $(cat /sys/dev/block/$r/../device/type 2>/dev/null)"
)
"""A command for any shell on the board, init's own too; `answered` reads what it prints."""
_QUESTION_S = 10

ROOTS: Mapping[str, str] = {
    "sd": r"type: SD\b",
    "emmc": r"type: MMC\b",
    "virtio": r"root: (?:\S*/virtio\d|vd[a-z])",
}
"""What the description of a root must show when its medium was asked for."""


class WrongBoot(BoardError):
    """What booted is not what was asked for: a boot that does not count, for the lab to mend. The
    board does as it is told. `medium` says whether it is the medium, not the kernel arguments.
    """

    kind = Kind.LAB
    permanent = True

    def __init__(self, message: str, *, medium: bool) -> None:
        super().__init__(message)
        self.medium = medium


@dataclass(frozen=True)
class BootedSystem:
    """The running system: the kernel's command line, and its root as `root: DEVICE type: KIND`, or None."""

    arguments: str | None = None
    root: str | None = None


_COMMAND_LINE = re.compile(r"\] Kernel command line: ([^\r\n]*)")
_MOUNTED = re.compile(r"\b(?:\w+-fs|XFS) \((\w+)\): [Mm]ount")
_PARTITION = re.compile(r"(?:\dp|d[a-z])(\d+)$")
_ROOT = re.compile(r"VFS: Mounted root \((\w+) filesystem\)[^\r\n]*? on device (\d+):(\d+)")
_ASKED_ROOT = re.compile(r".*(?:^| )root=(\S+)")
_HOST = re.compile(r"\b(mmcblk\d+): (mmc\d+):")
_CARD = re.compile(r"\b(mmc\d+): new [^\r\n]*?\b(SD|MMC)(?:HC|XC|UC)? card")
_ELSEWHERE = re.compile(r"/dev/nfs|ubi\d?[:_]|/dev/(?:ram|mtd|ubi)|mtd:")
"""A `root=` that is on no card, whatever else is mounted."""


def shown(text: str) -> BootedSystem:
    """What the kernel's messages on the console say; a quiet kernel says nothing."""
    arguments = _COMMAND_LINE.search(text)
    line = arguments[1].strip() if arguments else None
    return BootedSystem(line, _root(text, line))


def _root(text: str, arguments: str | None) -> str | None:
    """The root as the kernel mounted it, None where its messages do not decide.

    The kernel names the root's file system, not its disk: that is what was mounted right before it
    where the number of the partition is the same. Where an initial RAM disk mounts the root, the
    kernel has no word for it: `root=` must name what was mounted.
    """
    asked = _ASKED_ROOT.match(arguments or "")
    name = asked[1] if asked else ""
    if mounted := _ROOT.search(text):
        kind, major, minor = mounted.groups()
        if major in ("0", "1", "31"):  # of no disk, RAM, and MTD
            return f"root: {kind} on {name or 'no disk'}"
        before = _MOUNTED.findall(text, 0, mounted.start())
        device = before[-1] if before else ""
        partition = _PARTITION.search(device)
        if not device or (int(minor) - int(partition[1] if partition else 0)) % 8:
            return None
    elif _ELSEWHERE.match(name):
        return f"root: {name}"
    else:
        device = name.removeprefix("/dev/")
        if device not in _MOUNTED.findall(text):
            return None
    disk = re.sub(r"p\d+$", "", device)
    if not disk.startswith("mmcblk"):
        return f"root: {device}"
    hosts = dict(_HOST.findall(text))
    kind = dict(_CARD.findall(text)).get(hosts.get(disk, ""))
    return f"root: {device} type: {kind}" if kind else None


def is_android(system: BootedSystem) -> bool:
    """Whether the system is one whose shell may not read what QUESTION asks."""
    return "androidboot." in (system.arguments or "")


def answered(text: str) -> BootedSystem:
    """What QUESTION printed."""
    found = dict(re.findall(r"^(cmdline|root|type): ?([^\r\n]*)", text, re.MULTILINE))
    if "cmdline" not in found:
        return BootedSystem()
    root = f"root: {found.get('root', '').strip()} type: {found.get('type', '').strip()}"
    return BootedSystem(found["cmdline"].strip(), root.strip())


def on_console(console: Any) -> BootedSystem:
    """What the kernel said on a console that keeps a record."""
    said = getattr(console, "said", None)
    return shown(said()) if said else BootedSystem()


def asked(console: Any) -> BootedSystem:
    """What a shell without a login says of the system it runs in."""
    # The echo of the command holds the mark in two pieces.
    console.sendline(f"{QUESTION}; echo evm'perf-end'")
    _, before, _, _ = console.expect("evmperf-end", timeout=_QUESTION_S)
    return answered(before.decode("utf-8", "replace"))


def missing(arguments: str, system: BootedSystem) -> list[str]:
    """The words of `arguments` that the kernel did not get."""
    have = (system.arguments or "").split()
    return [word for word in arguments.split() if word not in have]


def complaint(
    medium: str, root: str, arguments: str, system: BootedSystem, scripts: Sequence[str]
) -> WrongBoot | None:
    """How what booted differs from the request, or None; `root` is the expression for the root on `medium`
    ("": any), `scripts` are U-Boot's variables that overwrite the arguments.
    """
    if lost := missing(arguments, system):
        by = f" ({', '.join(scripts)} in U-Boot's environment sets them)" if scripts else ""
        return WrongBoot(
            f"the kernel was booted without {' '.join(lost)}{by}: its command line is "
            f"{system.arguments!r}; check boot_command and kernel_arguments_variable of "
            f"the strategy, the card's uEnv.txt, and that `append` in an extlinux.conf has ${{optargs}}",
            medium=False,
        )
    if root and not re.search(root, system.root or ""):
        return WrongBoot(
            f"the board booted from another medium than {medium}: its {system.root}; check "
            f"that the medium is in its slot and bootable, and `media` of the strategy",
            medium=True,
        )
    return None
