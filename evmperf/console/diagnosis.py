"""Why a failed boot got no further, read from its console afterwards: the cause that a time-out names, never
a failure by itself.
"""

import re
from dataclasses import dataclass

from evmperf.model.errors import Kind

_LONGEST = 160
"""Characters of a line that a sentence quotes."""
_GARBLED = 0.08
"""Share of bytes that are no text from which a console is garbled. The text of other languages
comes as UTF-8, which is text."""
_ENOUGH = 40
"""Bytes from which that share says something."""
_MUTE = 3
"""Lines from "Starting kernel" on in which no kernel speaks."""
_FLOOD = 5
"""Errors of a disk from which they are why a boot takes so long."""


@dataclass(frozen=True)
class BootCause:
    """A cause: `name` for people, the `line` that shows it or "", who has to act, and whether the board
    `waits` for a person, so that no power cycle helps.
    """

    name: str
    line: str
    kind: Kind = Kind.BOARD
    remedy: str = ""
    waits: bool = False

    def __str__(self) -> str:
        """As the end of a sentence."""
        quoted = f": {self.line!r}" if self.line else ""
        return f"{self.name}{quoted}" + (f" ({self.remedy})" if self.remedy else "")


@dataclass(frozen=True)
class _Rule:
    name: str
    pattern: str
    remedy: str = ""
    kind: Kind = Kind.BOARD
    waits: bool = False
    within: int = 0
    """It counts among so many last lines only, as the board was just doing that; 0 for all."""
    over: str = ""
    """It does not count before such a line, which shows that the board got over it."""


def _waits(name: str, pattern: str, remedy: str, within: int = 0) -> _Rule:
    """Of a board that waits for a person, which is the lab's to change."""
    return _Rule(name, pattern, remedy, Kind.LAB, True, within)


_START = re.compile(
    r"^Starting kernel|^Uncompressing Linux|EFI stub: (?:Booting|Exiting)|Booting Linux on phys"
    r"|\] Linux version \d",
    re.MULTILINE,
)
USERLAND = r"Run /\S+ as init|systemd\[1\]: |INIT: version|\[  OK  \]|login: "
"""What is said only when the kernel has started its first program."""
_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-Z\\^_c])|[\x00\x07]")
_STAMP = r"(?:\[ *\d+\.\d+\](?:\[ *\w+\])? )?"

_LOGIN = "set `login_prompt` of the strategy in the board file to what the console shows"
_NETWORK = (
    "check the cable and that DHCP and TFTP servers answer this board; if it was not to start from "
    "the network, its medium holds no kernel"
)
_IMAGES = "check that the files of the boot medium are whole and this board's"
_MEDIUM = "check the boot medium, and that it holds the files of this board's image"

_WAITING = (
    _Rule(
        "a shell of a failed boot waits",
        r"^\(initramfs\)|^(?:dracut|switch_root|emergency)\S*[#>]|Control-D to continue|"
        r"(?:root password|press enter) for (?:system )?maintenance|grub rescue>|^grub>",
        "the lines before name what failed",
    ),
    _waits(
        "a menu waits for a choice",
        r"^Enter choice:|^\s*U-?Boot menu\b|^\W*Boot Menu\b|Press UP/DOWN|GNU GRUB|"
        r"highlighted entry|Use the .{1,20} keys|[Ss]elect an? (?:option|entry|boot)",
        "give it a default entry and a time-out (DEFAULT and TIMEOUT of extlinux.conf, GRUB_TIMEOUT)",
        3,
    ),
    _waits(
        "the console waits for Enter before it gives a shell",
        r"(?i)press enter to activate",
        "start a login on it, or " + _LOGIN,
    ),
    _waits(
        "the system waits for a key",
        r"(?i)(?:press|hit) (?:\W?enter\W?|return|any key|a key)(?! to (?:stop|abort))",
        "read its question, and build an image that does not ask",
        3,
    ),
    _waits(
        "a dialogue waits for an answer",
        r"(?i)(?:create|new|enter|retype|repeat|choose|provide|configure|set)\b[^\n]{0,60}[:?] *$"
        r"|pass(?:word|phrase)[^\n]{0,60}: *$|would you like|\[y/n\]|\(y/n\)|\(yes/no\)",
        "finish the first start by hand once, or build an image without it",
        2,
    ),
    _waits("a login of another form waits", r"(?i)(?:login|user ?name|user): *$", _LOGIN, 1),
)
_SHELL = _waits(
    "a prompt of another form waits",
    r"^(?!=>|Loading)(?=[^\n]*\w)[^\s\[(][^\n]{0,40}[#$>%] *$|^(?!=>)[#$>%=]{1,3} *$",
    "set `prompt` of EvmUBootDriver in the board file if it is U-Boot's; if it is Linux's, " + _LOGIN,
    1,
)
_LOADER = (
    _Rule(
        "the ROM waits for an image over the UART",
        r"C{12}",
        "check the boot-mode switches and that their medium has this device's first loader "
        "(tiboot3.bin; MLO before K3)",
    ),
    _waits(
        "the loader waits for an image from a host",
        r"^Back to ROM|^SDP: |^Trying to boot from (?:USB|DFU|UART)\b",
        "check the boot-mode switches and that the medium they choose holds an image",
        1,
    ),
    _Rule(
        "the board did not start again after its reset by software",
        r"reboot: Restarting system",
        "switch it off and on by hand; its kernel lacks the driver that resets it (a watchdog, PSCI)",
        waits=True,
        within=1,
    ),
    _Rule(
        "an image is refused",
        r"Authentication failed|Failed to verify required signature|Bad Data (?:CRC|Hash)|"
        r"Bad hash value|Bad Header Checksum|hash value.{0,20}(?:bad|error)|ERROR: signature|"
        r"image is corrupt|Bad FIT \w+ image",
        _IMAGES,
    ),
    _Rule(
        "the system controller does not start",
        r"(?:Boot Notification response|Firmware init) failed|sysctrler|"
        r"ti[_-]sci[^\n]*(?:fail|timed? ?out)|SYSFW[^\n]*(?:fail|error)",
        "use the tiboot3.bin and sysfw of this device and its type (GP, HS-FS, HS-SE)",
    ),
    _Rule(
        "U-Boot hangs while it loads a remote core",
        r"^Load(?: Remote Processor|\s*$)|[Rr]emoteproc",
        "check that core's firmware (rproc_fw_binaries in U-Boot's environment)",
        within=3,
    ),
    _Rule("the memory does not start", r"(?i)\b(?:lp)?ddr\w*\b[^\n]*(?:fail|error|time)"),
    _Rule(
        "the medium cannot be read",
        r"[Rr]ead error|did not respond|fs_devread|mmc_load_image|[Tt]imeout[^\n]*mmc|"
        r"mmc[^\n]*(?:[Tt]imeout|timed out|error)",
        _MEDIUM,
    ),
    _Rule(
        "there is no medium",
        r"no card present|MMC Device \d+ not found|failed to boot from all|"
        r"no devices available",
        _MEDIUM,
        Kind.LAB,
    ),
    _Rule(
        "the medium has no such partition",
        r"block number .* exceeds max|No partition table|Couldn't find partition|"
        r"Bad device specification|[Ii]nvalid partition|Unable to mount|Failed to mount ext|"
        r"Unrecognized filesystem",
        _MEDIUM,
    ),
    _Rule(
        "there is no kernel that U-Boot can start",
        r"Bad Linux \w+ [Ii]mage magic|Wrong Image|[Cc]an't get kernel image|Bad Magic Number|"
        r"Unknown image format|FDT_ERR_BADMAGIC|(?:no|find a) valid (?:device tree|fdt)|"
        r"inflate\(\) returned|Image too large",
        _IMAGES,
    ),
    _Rule(
        "a file is missing",
        r"[Ff]ile not found (?!.*boot\.scr)|Unable to read file (?!boot\.scr|uEnv)|"
        r"Failed to load '(?!boot\.scr|uEnv)[^']*'",
        _MEDIUM,
    ),
    _Rule(
        "nothing bootable",
        r"^Scanning \w+ \d+:\w+\.\.\.|^Config file not found",
        "no medium that U-Boot tried has an extlinux.conf, a boot script or an EFI boot loader",
    ),
    # Last: U-Boot tries the network when its medium has failed.
    _Rule(
        "the network does not answer",
        r"Retry (?:time|count) exceeded|BOOTP broadcast (?:[4-9]|\d\d)|(?:T ){3}|TFTP error|"
        r"TFTP server died|auto negotiation.{0,40}TIMEOUT|[Nn]o ethernet found|link is down",
        _NETWORK,
        Kind.LAB,
    ),
)
_LINUX = (
    _Rule("the kernel crashed", r"Kernel panic|Internal error:|Oops:|BUG: |Unable to handle kern"),
    _Rule(
        "init crashed",
        r"Freezing execution|Failed to mount API|kill init|No working init|Failed to execute /|"
        r"Caught <\w+>|error while loading shared libraries|can't execute|"
        r"Failed to allocate manager object|init: .{0,40}respawning too fast",
        "the root file system is damaged or another board's: write it anew",
    ),
    _Rule(
        "the root file system did not appear",
        r"Waiting for root device|Unable to mount root|Cannot open root device|"
        r"Gave up waiting for (?:root|suspend)|does not exist\. +Dropping|root file ?system device|"
        r"Could not boot|Root-NFS: |VFS: Can't find|Waiting for root file ?system|"
        r"mount: .{0,60}(?:failed|No such)",
        "check the kernel's `root=`, and that its medium is seen by the kernel",
        over=r"EXT4-fs \([^)]+\): (?:re-)?mounted|VFS: Mounted root|Not activating Mandatory Access",
    ),
    _Rule(
        "the network does not answer",
        r"nfs: server \S+ not responding|Sending (?:DHCP|BOOTP)[^\n]*requests \.|"
        r"IP-Config: [^\n]*(?:[Rr]etr|fail|timed)|DHCP/BOOTP[^\n]*timed out",
        _NETWORK,
        Kind.LAB,
    ),
    _Rule(
        "a file system is damaged",
        r"RUN fsck MANUALLY|UNEXPECTED INCONSISTENCY|fsck[^\n]*(?:fail|exited with)",
        "write the medium anew",
    ),
    _Rule("a unit of systemd failed", r"Dependency failed|Timed out waiting for|\bstart job is"),
    _Rule("the kernel hangs", r"rcu[^\n]*stall|soft lockup|blocked for more than|SError"),
)
_DISK = re.compile(
    rf"^{_STAMP}[^\n]*(?:I/O error, dev (?!\w+(?:boot\d|rpmb)|fd\d)|-fs error \(device|"
    r"Timeout waiting for hardware|tuning execution failed|error -110)[^\n]*",
    re.MULTILINE,
)
_TROUBLE = re.compile(
    r"(?i)\b(?:err|error|errors|fail|fails|failed|failure|unable|cannot|can't|could ?n[o']t|"
    r"not (?:found|present|available|supported|responding)|no such|time[ds]?[ -]?out|invalid|bad|"
    r"wrong|aborts?|aborted|corrupt\w*|missing|denied|refused|exceed\w*|exhausted|mismatch|panic|"
    r"fault|crash\w*|too large|must reset|unknown|watchdog|traps?|overflow|gave up|"
    r"does not exist|inconsistency)\b|\bret(?:urned)? = ?-"
)
_BENIGN = re.compile(
    r"(?i)default environment|EEPROM not available|boot\.scr|uEnv\.txt|uboot\.env|panic=|"
    r"kernel command line|trying to read|ErrataID|^\W*resetting|\d ?m?s timeout"
)
_GOT_OVER = re.compile(
    r"\A(?s:.*)(?=^U-Boot (?:SPL )?\d{4}\.\d\d)|^Trying to boot (?s:.*)(?=^Trying to boot )", re.M
)
"""What boot loaders said before the one that runs, and of a medium before the one it tries now."""
_NO_REASON = re.compile(r"(?i)\W*resetting\b|U-Boot (?:SPL )?\d{4}")
_PHASES = (
    ("MCU+ SBL", r"^\[(?:KPI|BOOTLOADER)|SBL Total Time"),
    ("SPL", r"U-Boot SPL \d{4}\.\d\d"),
    ("TF-A", r"NOTICE:  BL\d"),
    ("OP-TEE", r"^I/TC: "),
    ("the SPL after TF-A", r"NOTICE:  BL31(?s:.*)U-Boot SPL \d{4}\.\d\d"),
    ("U-Boot", r"^U-Boot \d{4}\.\d\d"),
)


def plain(said: str) -> str:
    """What a terminal would show, nearly: no colours, no carriage returns."""
    return _CODES.sub("", said).replace("\r\n", "\n").replace("\r", "\n")


def last_line(said: str) -> str:
    """The last line that holds a word, "" for none; the whole of a short text costs as much."""
    lines = plain(said[-4096:]).split("\n")
    return next((_short(line) for line in reversed(lines) if line.strip()), "")


def reason(said: str, *, first: bool = False) -> str:
    """The line before a reset or a crash that says best why: the last sign of trouble among the
    last lines (the `first` where what followed is its consequence), else the last line.
    """
    lines = [line for line in plain(said[-4096:]).split("\n") if line.strip()]
    lines = [line for line in lines if not _NO_REASON.match(line)][-12:]
    signs = [line for line in lines if _is_trouble(line)]
    return _short((signs or lines or [""])[0 if first and signs else -1])


def phase(said: str) -> str:
    """The program of the boot that spoke last, "" where none has said its name."""
    text = plain(said)
    ends = [
        (found[-1].end(), number, name)
        for number, (name, pattern) in enumerate(_PHASES)
        if (found := list(re.finditer(pattern, text, re.MULTILINE)))
    ]
    return max(ends)[2] if ends else ""


def garbled(said: str) -> float:
    """The share of characters that are no text: what another baud rate makes of a console."""
    odd = sum(not (c.isprintable() or c in "\t\n\r\b\x07\x1b\x00") or c == "\ufffd" for c in said)
    return odd / max(len(said), 1)


def diagnose(said: str) -> BootCause | None:
    """The cause that what a console said since power-on shows best, None where nothing does."""
    text = plain(said)
    start = _START.search(text)
    # A kernel may set another baud rate than the boot loader.
    recent = text[start.start() if start else 0 :][-4096:]
    if len(recent) >= _ENOUGH and (share := garbled(recent)) >= _GARBLED:
        return BootCause(
            f"the console is garbled, {share:.0%} of its characters are not text",
            last_line(said),
            Kind.LAB,
            "check `speed` of the serial port in the board file, the cable and its ground",
        )
    if start is None:
        rules = (*_WAITING, *_LOADER, _SHELL)
        return _first(rules, _GOT_OVER.sub("", text)) or _trouble(text)
    loader, linux = text[: start.start()], text[start.start() :]
    if found := _flood(linux) or _first((*_WAITING, *_LINUX, _SHELL), linux):
        return found
    trouble = _trouble(linux)
    if re.search(USERLAND, linux):
        # What a driver could not do did not keep the first program from running.
        return _silent("the system runs and gives no login", trouble)
    if trouble or linux.count("\n") > _MUTE:
        return trouble or _silent("the kernel stops before its first program", None)
    return _mute(loader, linux)


def _flood(linux: str) -> BootCause | None:
    failed = _DISK.findall(linux)
    if len(failed) < _FLOOD:
        return None
    return BootCause(f"a disk failed {len(failed)} times", _short(failed[-1]), remedy="rewrite or replace it")


def _mute(loader: str, linux: str) -> BootCause | None:
    """Why a kernel was started and never said a word."""
    before = _first(_LOADER, linux) or _first(_LOADER, loader)
    return BootCause(
        "the kernel prints nothing",
        before.line if before else "",
        remedy="check the device tree, that it is this board's, and `console=` of the kernel's arguments",
    )


def _silent(name: str, trouble: BootCause | None) -> BootCause:
    """How far Linux got, and the last line that may say why."""
    remedy = "check `console=` of the kernel's arguments, and that a getty is on it"
    return BootCause(name, trouble.line if trouble else "", remedy=remedy)


def _first(rules: tuple[_Rule, ...], text: str) -> BootCause | None:
    """The first rule that holds, with the last line that shows it."""
    lines = [line for line in text.split("\n") if line.strip()]
    for rule in rules:
        among = lines[-rule.within :]
        if rule.over:
            over = [number for number, line in enumerate(among) if re.search(rule.over, line)]
            among = among[over[-1] + 1 if over else 0 :]
        shown = [line for line in among if re.search(rule.pattern, line)]
        if shown:
            return BootCause(rule.name, _short(shown[-1]), rule.kind, rule.remedy, rule.waits)
    return None


def _trouble(text: str) -> BootCause | None:
    signs = [line for line in text.split("\n") if _is_trouble(line)]
    return BootCause("the last sign of trouble is", _short(signs[-1])) if signs else None


def _is_trouble(line: str) -> bool:
    return bool(_TROUBLE.search(line) and not _BENIGN.search(line))


def _short(line: str) -> str:
    line = "".join(c if c.isprintable() else "?" for c in line.strip())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
