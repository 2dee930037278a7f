"""The kernel's command line: how words get onto it in U-Boot's environment, and what booted by it, from the
console or asked of the system.

U-Boot passes the variable `bootargs`. TI's scripts set it in the boot command from others, with
`${optargs}` for the user's words; but on some boards a script sets `optargs` itself, right before,
and what was set at the prompt is lost (AM64x, J721E, J7200, J721S2: `args_all`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evmperf.model.errors import BoardError, Kind

QUESTION = "; ".join(Path(__file__).with_name("booted.sh").read_text("utf-8").splitlines())
"""A command for any shell on the board, init's own too; `answered` reads what it prints."""
_QUESTION_S = 10
_LONGEST = 900
"""Characters of a command that every U-Boot takes (CONFIG_SYS_CBSIZE is 1024 on TI's boards)."""

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


_SLOT = re.compile(r"(?:^| )((?:root|init|rauc\.slot|androidboot\.slot_suffix)=\S+)")
_IDENTITY = {
    "U-Boot": re.compile(r"(?<=[\r\n])U-Boot \d{4}\.\d\d[^\r\n]*"),
    "kernel": re.compile(r"\] Linux version ([^\r\n]*)"),
}


def identity(text: str) -> dict[str, str]:
    """Boot loader, kernel and root that a boot's console names; what it does not show is absent."""
    system = shown(text)
    found = {name: match[match.re.groups] for name, form in _IDENTITY.items() if (match := form.search(text))}
    # The number of a disk may change from boot to boot, that of a partition does not.
    partition = re.match(r"root: \S+?p?(\d+)(?: |$)", system.root or "")
    slots = _SLOT.findall(system.arguments or "")
    parts = [*slots, *([f"partition {partition[1]}"] if partition else [])]
    return found | ({"root": ", ".join(parts)} if parts else {})


def another_system(first: Mapping[str, str], later: Mapping[str, str]) -> WrongBoot | None:
    """How a later boot of a series is one of another system than the first, or None."""
    other = [name for name in first if name in later and first[name] != later[name]]
    if not other:
        return None
    differences = "; ".join(f"{name} is {later[name]!r}, was {first[name]!r}" for name in other)
    return WrongBoot(
        f"another system booted than before, so this boot is not counted: {differences}. An A/B updater "
        f"(RAUC, SWUpdate, Mender) changes the slot where the power is cut before a boot is marked good: "
        f"mark the slot good, or disable the updater's boot counter, while boots are measured",
        medium=False,
    )


def answered(text: str) -> BootedSystem:
    """What QUESTION printed."""
    answers = dict(re.findall(r"^(cmdline|root|type): ?([^\r\n]*)", text, re.MULTILINE))
    if "cmdline" not in answers:
        return BootedSystem()
    root = f"root: {answers.get('root', '').strip()} type: {answers.get('type', '').strip()}"
    return BootedSystem(answers["cmdline"].strip(), root.strip())


def on_console(console: object) -> BootedSystem:
    """What the kernel said on a console that keeps a record."""
    output = getattr(console, "output", None)
    return shown(output()) if output else BootedSystem()


def asked(console: Any) -> BootedSystem:
    """What a shell without a login says of the system it runs in."""
    # The echo of the command holds the mark in two pieces.
    console.sendline(f"{QUESTION}; echo evm'perf-end'")
    _, before, _, _ = console.expect("evmperf-end", timeout=_QUESTION_S)
    return answered(before.decode("utf-8", "replace"))


def complaint(
    medium: str, root: str, arguments: str, system: BootedSystem, scripts: Sequence[str]
) -> WrongBoot | None:
    """How what booted differs from the request, or None; `root` is the expression for the root on `medium`
    ("": any), `scripts` are U-Boot's variables that overwrite the arguments.
    """
    have = (system.arguments or "").split()
    if lost := [word for word in arguments.split() if word not in have]:
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
            f"that the medium is in its slot and bootable, `media` of the strategy, and the card's uEnv.txt",
            medium=True,
        )
    return None


def variables(printed: str) -> dict[str, str]:
    """The variables that `printenv` printed; a line without a name continues the value before it."""
    values: dict[str, str] = {}
    name = ""
    for line in printed.replace("\r", "").split("\n"):
        if match := re.match(r"([A-Za-z_][\w.,#+-]*)=(.*)", line):
            name = match[1]
            values[name] = match[2]
        elif name and line and not line.startswith("Environment size:"):
            values[name] += f"\n{line}"
    return values


def overwriting(environment: Mapping[str, str], variable: str) -> list[str]:
    """Names of the scripts that set `variable` themselves."""
    pattern = _setting(variable)
    return [name for name, value in environment.items() if pattern.search(value)]


def arguments_commands(environment: Mapping[str, str], variable: str, arguments: str) -> list[str]:
    """U-Boot commands after which the boot command passes `arguments` in `variable` to the kernel: scripts
    that set it, or `bootargs` where none reads it, are extended.
    """
    commands = [f"setenv {variable} '{arguments}'"]
    if not arguments:
        return commands
    target = variable
    if not any(f"${{{variable}}}" in value for value in environment.values()):
        target = "bootargs"
    for name in overwriting(environment, target):
        value = _setting(target).sub(rf"\g<0> {arguments}", environment[name])
        command = f"setenv {name} '{value}'"
        # A value with quotes or lines of its own cannot be typed; that it was needed shows later.
        if "'" not in value and "\n" not in value and len(command) <= _LONGEST:
            commands.append(command)
    return commands


def _setting(variable: str) -> re.Pattern[str]:
    """`setenv VARIABLE words`, up to the end of that command."""
    return re.compile(rf"\b(?:env set|setenv) {re.escape(variable)}\b[^;\n&|]*")
