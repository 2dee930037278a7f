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

from evmperf.console import diagnosis
from evmperf.model.errors import Kind

_OVERLAP = 2048
"""Bytes kept from chunk to chunk, so that a text cut in two is still seen: more than a line of the
kernel's, which is at most 1 KiB.
"""
_MEMORY = 1 << 18
"""Bytes of this boot in which a failure's cause is looked for."""
_REASON = 4096
"""Bytes before an event in which it is said why it came."""
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
    """From the kernel's start to the prompt."""
    WORKING = 4
    """At a prompt of Linux: a program may print what it likes."""


@dataclass(frozen=True)
class Alarm:
    """What was seen: `name` for people and records, `text` the line that showed it.

    `kind` is who has to act, `remedy` what may help; `permanent` says that a power cycle will not,
    `after` is the line before that says why, "" where the text says it all.
    """

    name: str
    text: str
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False
    after: str = ""

    def __str__(self) -> str:
        """As a sentence."""
        after = f", after {self.after!r}" if self.after and self.after != self.text else ""
        remedy = f": {self.remedy}" if self.remedy else ""
        return f"{self.name} on the console: {self.text}{after}{remedy}"


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
_SIGNS: dict[str, _Sign] = {
    "panic": _Sign("kernel panic", rf"{_BEGIN}Kernel panic - not syncing{_LINE}", _ALWAYS),
    "oops": _Sign(
        "kernel oops",
        rf"{_BEGIN}(?:Internal error: [^\r\n]*\[#\d+\]|kernel BUG at ){_LINE}",
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
        r"Entering emergency mode|ALERT! [^\r\n]* does not exist\. +Dropping to a shell|"
        r"\(or (?:press|type) (?:Control|Ctrl)-D )[^\r\n]*",
        _RUNNING,
        remedy="a mount or a service of the image failed: the lines before name it",
    ),
    "rescue": _Sign(
        "emergency mode",
        r"[\r\n](?:\(initramfs\) |(?:dracut|switch_root|emergency):[^\s#]*# )",
        frozenset({Stage.LINUX}),
        remedy="the root file system was not mounted: the lines before say why",
    ),
    "frozen": _Sign("init crashed", rf"{_KERNEL}systemd\[1\]: Freezing execution", _RUNNING),
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
        rf'[\r\n](?:"(?:Synchronous Abort|Error)" handler, esr{_LINE}|'
        r"(?:data abort|prefetch abort|undefined instruction) *[\r\n])",
        _BOOT,
    ),
    "rom": _Sign(
        "nothing bootable",
        r"C{12}",
        _STARTING,
        remedy="the ROM waits for an image over the UART (CCCC): check the boot-mode switches and "
        "that the medium they choose is in its slot and has a tiboot3.bin for this device",
        permanent=True,
    ),
    "reset_command": _Sign(
        "silent reset", rf"[\r\n]resetting \.\.\.{_LINE}", frozenset({Stage.UBOOT})
    ),
    "network": _Sign(
        "no answer from the network",
        rf"[\r\n]Retry (?:time|count) exceeded; starting again{_LINE}",
        _BOOT,
        Kind.LAB,
        "check the cable and that DHCP and TFTP servers answer this board; if it was not to start "
        "from the network, no medium that it can see holds a kernel",
    ),
    "barebox": _Sign(
        "the boot loader is barebox, not U-Boot",
        rf"[\r\n]barebox 20\d\d\.\d\d\.\d{_LINE}",
        frozenset({Stage.LOADING}),
        Kind.LAB,
        "install an image whose boot loader is U-Boot",
        permanent=True,
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

_SECOND = frozenset({"network"})
"""What happens once in a healthy boot, too."""
_EXPLAINED = frozenset(
    {"hang", "emergency", "rescue", "frozen", "network", "reset_command", "no_bootflow", "rom"}
)
"""Signs whose reason is in the lines before."""
_FIRST_SIGN = frozenset({"emergency", "rescue"})
"""Those whose reason has consequences that are printed, too."""

_LINUX = (
    r"Starting kernel \.\.\.|Linux version \d|Booting Linux on physical CPU|EFI stub: Booting Linux"
)
_USERLAND = re.compile(rb"Run /\S+ as init|systemd\[1\]: |INIT: version|\[  OK  \]|login: ")
_HANDED_OVER = re.compile(r"BL31|Starting ATF|OP-TEE|Image loading done|ErrataID:i2331")
"""What is said between two banners of SPL of which the second is no restart, or a known one."""
_RESET = "silent reset"
_FIRST = r"(?=[\x00-\x1f\x80-\xff\[#ABCELPS])"
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
        r"(?P<login>[\r\n][^\s:]+ login: )",
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
        self._seen: set[str] = set()
        self._said = bytearray()
        self._again = ""
        self._banner_at = 0
        self.notes: list[str] = []
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
            self._said.clear()

    def arrive(self) -> None:
        """The prompt of Linux has been reached: from now on programs are at work."""
        self._stage = Stage.WORKING

    @property
    def said(self) -> str:
        """What the board said last: since its power-on, or since U-Boot's prompt."""
        return self._said.decode("utf-8", "replace")

    def feed(self, data: bytes) -> Alarm | None:
        """Look at bytes that just arrived."""
        if self._alarmed:
            return None
        window = self._tail + data
        base = self._offset - len(self._tail)
        self._offset += len(data)
        self._said += data
        if len(self._said) > _MEMORY:
            del self._said[: _MEMORY // 2]
        begin = 0
        for match in _events().finditer(window):
            # What was seen must not be seen again in another light; but the end of a line is the
            # beginning of the next.
            begin = match.end() - (match.group()[-1:] in b"\r\n")
            text = match.group().decode("utf-8", "replace").strip()
            if alarm := self._judge(str(match.lastgroup), text, base + match.end()):
                self._alarmed = True
                return alarm
        self._tail = window[max(begin, _unfinished(window)) :]
        return None

    def _between(self, begin: int, end: int) -> str:
        """What the board said between two bytes, as far as it is still known."""
        shift = len(self._said) - self._offset
        return self._said[max(begin + shift, 0) : end + shift].decode("utf-8", "replace")

    def _reason(self, text: str, at: int, *, first: bool = False) -> str:
        """Why an event came that ends at a byte."""
        before = self._between(at - _REASON, at).rstrip().removesuffix(text)
        return diagnosis.reason(before, first=first)

    def _judge(self, event: str, text: str, at: int) -> Alarm | None:
        """Take note of an event that ends at a byte; returns its alarm."""
        if sign := _SIGNS.get(event):
            if self._stage not in sign.stages:
                return None
            if event in _SECOND and event not in self._seen:
                self._seen.add(event)
                return None
            after = (
                self._reason(text, at, first=event in _FIRST_SIGN) if event in _EXPLAINED else ""
            )
            if event == "no_bootflow" and (cause := diagnosis.diagnose(self._between(0, at))):
                after = cause.line
            return Alarm(sign.name, text, sign.kind, sign.remedy, sign.permanent, after)
        if event == "loader":
            return self._confirm(at)
        if event in ("asleep", "awake"):
            self._asleep = event == "asleep"
        elif event == "login":
            return self._login(text, at)
        elif event == "linux":
            return self._linux(text, at)
        elif self._stage is Stage.LOADING:
            return self._banner(event, text, at)
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
        return Alarm(_RESET, suspect, after=self._reason(suspect, self._suspect_at))

    def _login(self, text: str, at: int) -> Alarm | None:
        """A login prompt, or what looks like one."""
        again, self._again = self._again, ""
        if self._stage is Stage.WORKING and again:
            return Alarm(_RESET, again)
        if self._stage is Stage.LINUX:
            self._stage = Stage.WORKING
        return self._linux(text, at) if self._stage is Stage.LOADING else None

    def _linux(self, text: str, at: int) -> Alarm | None:
        """Linux runs, or says that it does."""
        stage, starts = self._stage, text.startswith(("Booting", "Starting"))
        if stage is Stage.WORKING:
            # `dmesg` prints it, too; but no login after it.
            self._again = text if starts else self._again
            return None
        if "login:" not in text:
            self._stage = Stage.LINUX
        if stage is not Stage.LOADING:
            # Before the first program a console that is new may get the kernel's log once more.
            again = stage is Stage.LINUX and starts
            if again and _USERLAND.search(self._said):
                after = self._reason(text, at)
                return Alarm(_RESET, f"a second kernel starts: {text}", after=after)
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

    def _banner(self, event: str, text: str, at: int) -> Alarm | None:
        passed, self._banner_at = self._between(self._banner_at, at), at
        handed_over = event == "uboot" or _HANDED_OVER.search(passed)
        if self._uboots or (self._spls and not handed_over):
            before = diagnosis.reason(passed.rstrip().removesuffix(text))
            self.notes.append(f"the boot loader started again after {before!r}")
        if event == "uboot":
            self._uboots += 1
            self._spls = 0
        else:
            self._spls += 1
        if self._spls > _MOST_SPLS or self._uboots > _MOST_UBOOTS:
            return Alarm(
                "boot loader in a loop", text, Kind.BOARD,
                "it restarts before its prompt; check that the images are this board's",
                permanent=True, after=self._reason(text, at),
            )  # fmt: skip
        return None


def _unfinished(window: bytes) -> int:
    """Where what may still become an event begins: with its line."""
    return max(window.rfind(b"\n"), len(window) - _OVERLAP, 0)
