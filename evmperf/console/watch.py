"""Watching the console for what must not come: a panic, a boot that went wrong, a silent reset.

Works on the stream as it arrives, so that a dead board is named within a second instead of after
a test's time-out. Each thing is a `Sign`: its text, where in a boot it means trouble, who has to
act, and what to do.
"""

from __future__ import annotations

import enum
import functools
import re
from dataclasses import dataclass

from evmperf.model.errors import Kind

_OVERLAP = 2048
"""Bytes kept from chunk to chunk, so that a text cut in two is still seen: more than a line of the
kernel's, which is at most 1 KiB.
"""
_REASON = 256
"""Bytes before a boot loader's last word in which it says why."""
_CONFIRMED_WITHIN = 700
"""Bytes after a boot loader's banner in which its next lines must come: a program may print a
banner, too (`strings /dev/mtd0`, `fw_printenv ver`), but not what a boot loader says after it.
"""
_MOST_SPLS = 4
"""Banners of SPL before U-Boot's: R5 and A53, each of which may start twice (erratum i2331)."""
_MOST_UBOOTS = 3
"""Banners of U-Boot before its prompt: it may restart itself once to boot from another medium."""


class Stage(enum.Enum):
    """How far a boot is known to be."""

    FREE = 0
    """Nothing is expected: whatever comes is no failure of a boot."""
    LOADING = 1
    """From power-on to U-Boot's prompt."""
    UBOOT = 2
    """At U-Boot's prompt, or on the way to Linux from there."""
    LINUX = 3


@dataclass(frozen=True)
class Alarm:
    """What was seen: `name` for people and records, `text` the line that showed it.

    `kind` is who has to act, `remedy` what may help; `permanent` says that a power cycle will not.
    """

    name: str
    text: str
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False


@dataclass(frozen=True)
class _Sign:
    name: str
    pattern: str
    stages: frozenset[Stage]
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False


_ALWAYS = frozenset(Stage)
_BOOT = frozenset({Stage.LOADING, Stage.UBOOT})
_RUNNING = frozenset({Stage.LINUX, Stage.FREE})
_KERNEL = r"\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? "
_LINE = r"[^\r\n]*[\r\n]"

_UNSIGNED = (
    "it is not signed for this device: HS-FS devices need the tiboot3 of hs-fs, GP devices that "
    "of gp, and all images of one release for this very board"
)
_SIGNS: dict[str, _Sign] = {
    "panic": _Sign("kernel panic", rf"Kernel panic - not syncing{_LINE}", _ALWAYS),
    "oops": _Sign(
        "kernel oops",
        rf"(?:Internal error: [^\r\n]*\[#\d+\]|kernel BUG at ){_LINE}",
        _ALWAYS,
    ),
    "lockup": _Sign(
        "soft lockup", rf"{_KERNEL}watchdog: (?:BUG: soft|[^\r\n]*hard LOCKUP){_LINE}", _RUNNING
    ),
    "stall": _Sign(
        "RCU stall",
        rf"{_KERNEL}(?:rcu: )?INFO: rcu\w* (?:self-)?detected (?:expedited )?stall{_LINE}",
        _RUNNING,
    ),
    "serror": _Sign("SError", rf"{_KERNEL}SError Interrupt on CPU{_LINE}", _RUNNING),
    "hung": _Sign(
        "hung task", rf"{_KERNEL}INFO: task \S+ blocked for more than \d+ sec{_LINE}", _RUNNING
    ),
    "emergency": _Sign(
        "emergency mode",
        r"[\r\n](?:You are in (?:emergency|rescue) mode|Cannot open access to console, the root|"
        rf"Entering emergency mode|ALERT! [^\r\n]* does not exist\. +Dropping to a shell){_LINE}",
        _RUNNING,
        remedy="a mount or a service of the image failed: the lines before name it",
    ),
    "optee": _Sign("OP-TEE panic", rf"[\r\n]E/TC:[^\r\n]*[Pp]anic{_LINE}", _ALWAYS),
    "tfa": _Sign(
        "TF-A panic",
        rf"[\r\n](?:ERROR: +)?(?:PANIC (?:at PC|in EL3)|Unhandled Exception (?:in|from) EL){_LINE}",
        _ALWAYS,
    ),
    "refused": _Sign(
        "image refused",
        rf"Authentication failed!{_LINE}",  # two messages may share a line
        _BOOT,
        remedy=_UNSIGNED,
        permanent=True,
    ),
    "hang": _Sign(
        "boot loader stopped",
        r"### ERROR ### Please RESET the board ###",
        _BOOT,
        remedy="check the boot medium, and that its images are this board's",
        permanent=True,
    ),
    "abort": _Sign(
        "U-Boot crashed",
        rf'[\r\n]"(?:Synchronous Abort|Error)" handler, esr{_LINE}',
        _BOOT,
    ),
    "rom": _Sign(
        "nothing bootable",
        r"C{12}",
        frozenset({Stage.LOADING}),
        remedy="the ROM waits for an image over the UART (CCCC): check the boot-mode switches and "
        "that the medium they choose is in its slot and has a tiboot3.bin for this device",
        permanent=True,
    ),
    "reset_command": _Sign(
        "silent reset", rf"[\r\n]resetting \.\.\.{_LINE}", frozenset({Stage.UBOOT})
    ),
    "no_bootflow": _Sign(
        "nothing bootable",
        rf"[\r\n]No more bootdevs{_LINE}",
        frozenset({Stage.UBOOT}),
        remedy="no medium that U-Boot can see holds a kernel: check the medium that "
        "options.boot.medium names",
        permanent=True,
    ),
}  # fmt: skip
"""What is an alarm by itself, in the stages where it is one."""

_TROUBLES = (
    "read error",
    "no card present",
    "block number .* exceeds max",
    "No partition table|Couldn't find partition|Bad device specification",
    "Bad Linux ARM64 Image magic!|Wrong Image (?:Format|Type)",
    r"Failed to load '(?!boot\.scr)[^']*'",
)
"""Lines of U-Boot that say why it boots nothing, the best reason first; alone they are no failure,
as it goes on with the next medium.
"""

_LINUX = (
    r"Starting kernel \.\.\.|Linux version \d|Booting Linux on physical CPU|EFI stub: Booting Linux"
)
_RESET = "silent reset"
_FIRST = r"(?=[\x00-\x1f\x80-\xff\[\"#A-Zk])"
"""What any event begins with; without it each byte is held against all events, at 3 us a byte."""


def _patterns() -> list[str]:
    """Everything that tells something, each a named group."""
    return [
        *(f"(?P<{key}>{sign.pattern})" for key, sign in _SIGNS.items()),
        r"(?P<spl>[\r\n\x00-\x1f\x80-\xff]U-Boot SPL \d{4}\.\d\d[^\r\n]*[\r\n])",
        r"(?P<uboot>[\r\n]U-Boot \d{4}\.\d\d[^\r\n]*[\r\n])",
        r"(?P<loader>[\r\n](?:SYSFW ABI: \d|SPL initial stack usage: \d|"
        r"Trying to boot from \w|"
        r"EEPROM not available at|Resetting on cold boot|SoC: +\w|Model: \w|Board: \w|"
        r"DRAM: +\d|Core: +\d|CPU: +\w))",
        rf"(?P<linux>{_LINUX})",
        r"(?P<login>[\r\n][\w.-]+ login: )",
        rf"(?P<trouble>[\r\n](?:[^\r\n]*)(?:{'|'.join(_TROUBLES)})[^\r\n]*)",
        r"(?P<asleep>PM: suspend entry)",
        r"(?P<awake>PM: suspend exit)",
    ]


@functools.cache
def _events() -> re.Pattern[bytes]:
    """One pattern for all; takes 10 ms to compile, of no use where no board is."""
    return re.compile(f"{_FIRST}(?:{'|'.join(_patterns())})".encode("latin-1"))


class Watch:
    """Follows one boot; `feed` returns an alarm once, at the first thing that must not come.

    A boot loader may say what it likes until `settle` or until Linux starts. While Linux says that
    it is suspended, SPL may run: some boards wake up through it.
    """

    def __init__(self) -> None:
        self._awaited = False
        self.restart()

    def restart(self) -> None:
        """Begin anew: the power was just switched on."""
        self._tail = b"\n"  # what comes first begins a line
        self._stage = Stage.LOADING if self._awaited else Stage.FREE
        self._awaited = False
        self._asleep = False
        self._alarmed = False
        self._spls = self._uboots = 0
        self._troubles: list[str] = []
        self._suspect: str | None = None
        self._suspect_at = 0
        self._offset = 0

    def await_uboot(self) -> None:
        """From the next power-on on, what keeps a boot from U-Boot's prompt is an alarm."""
        self._awaited = True

    def settle(self) -> None:
        """From now on a boot loader's banner is a reset: its prompt has been reached."""
        if self._stage is not Stage.UBOOT:
            self._tail = b""
            self._stage = Stage.UBOOT
            self._troubles.clear()

    @property
    def trouble(self) -> str:
        """The line in which U-Boot says best why it boots nothing, "" for none."""
        ranked = (line for text in _TROUBLES for line in self._troubles if re.search(text, line))
        return next(ranked, "")

    def feed(self, data: bytes) -> Alarm | None:
        """Look at bytes that just arrived."""
        if self._alarmed:
            return None
        window = self._tail + data
        base = self._offset - len(self._tail)
        self._offset += len(data)
        begin = 0
        for match in _events().finditer(window):
            # What was seen must not be seen again in another light; but the end of a line is the
            # beginning of the next.
            begin = match.end() - (match.group()[-1:] in b"\r\n")
            text = match.group().decode("utf-8", "replace").strip()
            if match.lastgroup == "hang":
                text = _with_reason(window[: match.start()], text)
            if alarm := self._judge(str(match.lastgroup), text, base + match.end()):
                self._alarmed = True
                return alarm
        self._tail = window[max(begin, _unfinished(window)) :]
        return None

    def _judge(self, event: str, text: str, at: int) -> Alarm | None:
        """Take note of an event that ends at a byte; returns its alarm."""
        if sign := _SIGNS.get(event):
            if event == "no_bootflow" and self.trouble:
                text = f"{self.trouble}; {text}"
            alarm = Alarm(sign.name, text, sign.kind, sign.remedy, sign.permanent)
            return alarm if self._stage in sign.stages else None
        if event == "loader":
            return self._confirm(at)
        if event == "trouble":
            self._troubles.append(text)
        elif event in ("asleep", "awake"):
            self._asleep = event == "asleep"
        elif event in ("linux", "login"):
            return self._linux(event, text)
        elif self._stage is Stage.LOADING:
            return self._banner(event, text)
        elif event == "uboot" or not self._asleep:
            self._suspect, self._suspect_at = text, at
        return None

    def _confirm(self, at: int) -> Alarm | None:
        """A line of a boot loader: what looked like its banner was one."""
        suspect, self._suspect = self._suspect, None
        if suspect is None or self._stage is Stage.FREE:
            return None
        if at - self._suspect_at > _CONFIRMED_WITHIN:
            return None
        return Alarm(_RESET, suspect)

    def _linux(self, event: str, text: str) -> Alarm | None:
        """Linux runs, or says that it does."""
        stage = self._stage
        if event == "linux":
            self._stage = Stage.LINUX
        if stage is not Stage.LOADING:
            return None
        if self._uboots:
            return Alarm(
                "autoboot was not stopped", text, Kind.LAB,
                "U-Boot's countdown must be at least a second (bootdelay), and `autoboot` and "
                "`interrupt` of UBootDriver in the board file what U-Boot asks for",
                permanent=True,
            )  # fmt: skip
        which = "SPL started Linux itself (falcon mode)" if self._spls else "no U-Boot in this boot"
        return Alarm(
            which, text, Kind.LAB,
            "boot times are taken from U-Boot's prompt on: install an image whose boot loader is "
            "U-Boot",
            permanent=True,
        )  # fmt: skip

    def _banner(self, event: str, text: str) -> Alarm | None:
        if event == "uboot":
            self._uboots += 1
            self._spls = 0
        else:
            self._spls += 1
        if self._spls > _MOST_SPLS or self._uboots > _MOST_UBOOTS:
            return Alarm(
                "boot loader in a loop", text, Kind.BOARD,
                "it restarts before its prompt: the lines before say why; check that the images "
                "are this board's",
                permanent=True,
            )  # fmt: skip
        return None


def _unfinished(window: bytes) -> int:
    """Where what may still become an event begins: with its line, or the reason before it."""
    line = window.rfind(b"\n")
    return max(min(line, len(window) - _REASON), len(window) - _OVERLAP, 0)


def _with_reason(before: bytes, text: str) -> str:
    """A boot loader's last word with the line before it, which says why."""
    lines = before.decode("utf-8", "replace").split("\n")
    reason = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{reason}: {text}" if reason else text
