"""What a console says when something must not come: each a text, where in a boot it means
trouble, who has to act, and what to do; and what else tells how far a boot is.

All are one regular expression over the stream (`events`). A sign that needs lines after it, or a
reason from the lines before, gets them from the watch.
"""

import enum
import functools
import re
from dataclasses import dataclass

from evmperf.model.errors import Kind


class Stage(enum.Enum):
    """How far a boot is known to be."""

    FREE = 0
    """Nothing is expected: whatever comes is no failure of a boot."""
    LOADING = 1
    """From power-on to U-Boot's prompt."""
    UBOOT = 2
    """At U-Boot's prompt, or on the way to Linux from there."""
    LINUX = 3
    """From the kernel's start to the prompt."""
    WORKING = 4
    """At a prompt of Linux: a program may print what it likes."""


@dataclass(frozen=True)
class Sign:
    """One text that means trouble, a regular expression, in the stages of a boot where it does."""

    name: str
    pattern: str
    stages: frozenset[Stage]
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False


_ALWAYS = frozenset(Stage)
_BOOT = frozenset({Stage.LOADING, Stage.UBOOT})
_RUNNING = frozenset({Stage.LINUX, Stage.WORKING, Stage.FREE})
_STARTING = frozenset({Stage.LOADING, Stage.UBOOT, Stage.LINUX})
# A stamp may stand in mid-line, where a message cut another program's text; but a log that is
# printed later says who spoke before it, or how loud.
_KERNEL = r"(?<!>)(?<!kernel: )\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? "
_BEGIN = rf"(?:{_KERNEL}|[\r\n])"
_LINE = r"[^\r\n]*[\r\n]"

_UNSIGNED = (
    "it is not signed for this device: HS-FS devices need the tiboot3 of hs-fs, GP devices that "
    "of gp, and all images of one release for this very board"
)
SIGNS: dict[str, Sign] = {
    "panic": Sign("kernel panic", rf"{_BEGIN}Kernel panic - not syncing{_LINE}", _ALWAYS),
    "oops": Sign(
        "kernel oops", rf"{_BEGIN}(?:Internal error: [^\r\n]*\[#\d+\]|kernel BUG at ){_LINE}", _ALWAYS
    ),
    "lockup": Sign("soft lockup", rf"{_KERNEL}watchdog: (?:BUG: soft|[^\r\n]*hard LOCKUP){_LINE}", _RUNNING),
    "stall": Sign(
        "RCU stall",
        rf"{_KERNEL}(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stall{_LINE}",
        _RUNNING,
    ),
    "serror": Sign("SError", rf"{_KERNEL}SError Interrupt on CPU{_LINE}", _RUNNING),
    "hung": Sign("hung task", rf"{_KERNEL}INFO: task \S+ blocked for more than \d+ sec{_LINE}", _RUNNING),
    "emergency": Sign(
        "emergency mode",
        r"[\r\n](?:You are in (?:emergency|rescue) mode|Cannot open access to console, the root|"
        r"Entering emergency mode|ALERT! [^\r\n]* does not exist\. +Dropping to a shell|"
        r"\(or (?:press|type) (?:Control|Ctrl)-D )[^\r\n]*",
        _RUNNING,
        remedy="a mount or a service of the image failed: the lines before name it",
    ),
    "rescue": Sign(
        "emergency mode",
        r"[\r\n](?:\(initramfs\) |(?:dracut|switch_root|emergency):[^\s#]*# )",
        frozenset({Stage.LINUX}),
        remedy="the root file system was not mounted: the lines before say why",
    ),
    "frozen": Sign("init crashed", rf"{_KERNEL}systemd\[1\]: Freezing execution", _RUNNING),
    "optee": Sign("OP-TEE panic", rf"[\r\n]E/TC:[^\r\n]*[Pp]anic{_LINE}", _ALWAYS),
    "tfa": Sign(
        "TF-A panic",
        rf"[\r\n](?:ERROR: +)?(?:PANIC (?:at PC|in EL3)|Unhandled Exception (?:in|from) EL){_LINE}",
        _ALWAYS,
    ),
    "refused": Sign(
        "image refused",
        rf"Authentication failed!{_LINE}",  # two messages may share a line
        _BOOT,
        remedy=_UNSIGNED,
        permanent=True,
    ),
    "hang": Sign(
        "boot loader stopped",
        r"### ERROR ### Please RESET the board ###",
        _BOOT,
        remedy="check the boot medium, and that its images are this board's",
        permanent=True,
    ),
    "abort": Sign(
        "U-Boot crashed",
        # Its quotation marks are its own; it may cut the line of a load.
        rf'"(?:Synchronous Abort|Error)" handler, esr{_LINE}|'
        r"[\r\n](?:data abort|prefetch abort|undefined instruction) *[\r\n]",
        _STARTING,
    ),
    "rom": Sign(
        "nothing bootable",
        r"C{12}",
        _STARTING,
        remedy="the ROM waits for an image over the UART (CCCC): check the boot-mode switches and "
        "that the medium they choose is in its slot and has this device's first loader (tiboot3.bin; "
        "MLO before K3)",
        permanent=True,
    ),
    "reset_command": Sign("silent reset", rf"[\r\n]resetting \.\.\.{_LINE}", frozenset({Stage.UBOOT})),
    "network": Sign(
        "no answer from the network",
        rf"[\r\n]Retry (?:time|count) exceeded; starting again{_LINE}",
        _BOOT,
        Kind.LAB,
        "check the cable and that DHCP and TFTP servers answer this board; if it was not to start "
        "from the network, no medium that it can see holds a kernel",
    ),
    "barebox": Sign(
        "the boot loader is barebox, not U-Boot",
        rf"[\r\n]barebox 20\d\d\.\d\d\.\d{_LINE}",
        frozenset({Stage.LOADING}),
        Kind.LAB,
        "install an image whose boot loader is U-Boot",
        permanent=True,
    ),
    "no_bootflow": Sign(
        "nothing bootable",
        rf"[\r\n]No more bootdevs{_LINE}",
        frozenset({Stage.UBOOT}),
        remedy="no medium that U-Boot can see holds a kernel: check the medium that "
        "options.boot.medium names",
        permanent=True,
    ),
}
"""What is an alarm by itself, in the stages where it is one."""

TWICE = frozenset({"network"})
"""What happens once in a healthy boot, too."""
EXPLAINED = frozenset(
    {"hang", "emergency", "rescue", "frozen", "network", "reset_command", "no_bootflow", "rom"}
)
"""Signs whose reason is in the lines before."""
BY_THE_FIRST = frozenset({"emergency", "rescue"})
"""Those whose reason has consequences that are printed, too."""

_LINUX = r"Starting kernel \.\.\.|Linux version \d|Booting Linux on physical CPU|EFI stub: Booting Linux"

_FIRST = r"(?=[\x00-\x1f\x80-\xff\[\"#ABCELPS])"
"""What any event begins with; without it each byte is held against all events, at 3 us a byte."""


def patterns() -> list[str]:
    """Everything that tells something, each a named group."""
    return [
        *(f"(?P<{key}>{sign.pattern})" for key, sign in SIGNS.items()),
        r"(?P<spl>[\r\n\x00-\x1f\x80-\xff]U-Boot SPL \d{4}\.\d\d[^\r\n]*[\r\n])",
        r"(?P<uboot>[\r\n]U-Boot \d{4}\.\d\d[^\r\n]*[\r\n])",
        r"(?P<loader>[\r\n](?:SYSFW ABI: \d|SPL initial stack usage: \d|"
        r"Trying to boot from \w|"
        r"EEPROM not available at|Resetting on cold boot|SoC: +\w|Model: \w|Board: \w|"
        r"DRAM: +\d|Core: +\d|CPU: +\w))",
        rf"(?P<linux>{_LINUX})",
        r"(?P<login>[\r\n][^\s:]+ login: )",
        r"(?P<asleep>PM: suspend entry)",
        r"(?P<awake>PM: suspend exit)",
    ]


@functools.cache
def events() -> re.Pattern[bytes]:
    """One pattern for all; takes 10 ms to compile, of no use where no board is."""
    return re.compile(f"{_FIRST}(?:{'|'.join(patterns())})".encode("latin-1"))
