"""What a console says when something goes wrong: signs while a board boots, and why a failed boot got no
further, read from its console afterwards: the cause that a time-out names, never a failure by itself.

The texts are in patterns.yaml. Those of a boot are one regular expression over the stream (`events`). A sign
that needs lines after it, or a reason from the lines before, gets them from the watch.
"""

import enum
import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evmperf.model.errors import Kind

_LONGEST = 160
"""Characters of a line that a sentence quotes."""
_GARBLED = 0.08
"""Share of bytes that are no text from which a console is garbled. The text of other languages
comes as UTF-8, which is text."""
_ENOUGH = 40
"""Bytes from which that share says something."""
_PIECE, _GARBLED_PIECE = 128, 0.3
"""Characters, and the share of them that are no text where one of several programs has another baud rate."""
_MUTE = 3
"""Lines from "Starting kernel" on in which no kernel speaks."""
_BANNER = 4
"""Lines from the first on of which one is the boot loader's first."""
_FLOOD = 5
"""Errors of a disk from which they are why a boot takes so long."""


_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|P[^\x07\x1b\r\n]*|[@-Z\\^_c])|[\x00\x07]"
)
_NO_REASON = re.compile(r"(?i)\W*resetting\b|Err: |U-Boot (?:SPL )?\d{4}|=> ")
_FIRST = r"(?=[\x00-\x1f\x80-\xff\[\"#ABCELPS])"
"""What any event begins with; without it each byte is held against all events, at 3 us a byte."""


class Stage(enum.StrEnum):
    """How far a boot is known to be."""

    FREE = enum.auto()
    """Nothing is expected: whatever comes is no failure of a boot."""
    LOADING = enum.auto()
    """From power-on to U-Boot's prompt."""
    UBOOT = enum.auto()
    """At U-Boot's prompt, or on the way to Linux from there."""
    LINUX = enum.auto()
    """From the kernel's start to the prompt."""
    WORKING = enum.auto()
    """At a prompt of Linux: a program may print what it likes."""


@dataclass(frozen=True)
class Alarm:
    """What was seen: `name`, the line `text` or "", who has to act, `remedy`, whether it is `permanent` (no
    power cycle helps), and the line that says why, if any, in `after`.
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

    def as_cause(self) -> str:
        """As the end of a sentence."""
        quoted = f": {self.text!r}" if self.text else ""
        return f"{self.name}{quoted}" + (f" ({self.remedy})" if self.remedy else "")


class Sign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that means trouble in these stages of a boot, or after it failed, as patterns.yaml has it."""

    name: str
    text: tuple[str, ...] = ()
    stages: frozenset[Stage] = frozenset(Stage)
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False
    twice: bool = False
    """Whether it happens once in a healthy boot, too."""
    explained: str = ""
    """Which line before is its reason: the `first` or `last` sign of trouble, the `cause`, or "" for none."""
    within: int = 0
    """The number of last lines that may show it, 0 for all."""
    over: str = ""
    """A line that shows that it was overcome."""
    unless: str = ""
    """A line with which it is the cause of nothing, wherever that line stands."""

    def seen(self, text: str, after: str = "", count: object = "") -> Alarm:
        """The alarm of this sign in a line."""
        name = self.name.replace("@count@", str(count))
        remedy = self.remedy.replace("@prompt@", re.escape(text))
        return Alarm(name, text, self.kind, remedy, self.permanent, after)


class Patterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sections of patterns.yaml."""

    fragments: dict[str, str]
    signs: dict[str, Sign]
    ends: dict[str, Sign]
    rules: dict[str, tuple[Sign, ...]]
    events: dict[str, tuple[str, ...]]
    marks: dict[str, tuple[str, ...]]
    phases: dict[str, tuple[str, ...]]
    texts: dict[str, tuple[str, ...]]


@functools.cache
def patterns() -> Patterns:
    """What boards say on their consoles."""
    return msgspec.yaml.decode(Path(__file__).with_name("patterns.yaml").read_bytes(), type=Patterns)


@functools.cache
def telling(what: str) -> re.Pattern[str]:
    """One of the texts of patterns.yaml, to be looked for in lines."""
    return re.compile("|".join(patterns().texts[what]), re.MULTILINE)


def groups() -> list[str]:
    """Everything that tells something, each a named group."""
    texts = {key: sign.text for key, sign in patterns().signs.items()} | patterns().events
    lines = "\n".join(f"(?P<{key}>{'|'.join(text)})" for key, text in texts.items())
    for name in ("begin", "line", "kernel"):
        lines = lines.replace(f"@{name}@", patterns().fragments[name])
    return lines.split("\n")


@functools.cache
def events() -> re.Pattern[bytes]:
    """One pattern for all; takes 10 ms to compile, of no use where no board is."""
    return re.compile(f"{_FIRST}(?:{'|'.join(groups())})".encode("latin-1"))


def plain(output: str) -> str:
    """What a terminal would show, nearly: no colours, no carriage returns."""
    return _CODES.sub("", output).replace("\r\n", "\n").replace("\r", "\n")


def last_line(output: str) -> str:
    """The last line that holds a word, "" for none; the whole of a short text costs as much."""
    lines = plain(output[-4096:]).split("\n")
    return next((_short(line) for line in reversed(lines) if line.strip()), "")


def reason(output: str, *, first: bool = False) -> str:
    """The line before a reset or a crash that says best why: the last sign of trouble among the
    last lines, else the last line; with `first` the first sign, of which what followed is the
    consequence, else "".
    """
    lines = [line for line in plain(output[-4096:]).split("\n") if line.strip()]
    lines = [line for line in lines if not _NO_REASON.match(line)][-12:]
    if first:
        units = [line for line in lines if telling("unit").search(line)]
        return _short((units or _troubles(lines) or [""])[0])
    return _short((_troubles(lines) or lines or [""])[-1])


def phase(output: str) -> str:
    """The program of the boot that spoke last, "" where none has said its name."""
    text = plain(output)
    ends = [
        (places[-1].end(), number, name)
        for number, (name, texts) in enumerate(patterns().phases.items())
        if (places := list(re.finditer("|".join(texts), text, re.MULTILINE)))
    ]
    return max(ends)[2] if ends else ""


def garbled(output: str) -> float:
    """The share of characters that are no text: what another baud rate makes of a console."""
    odd = sum(not (c.isprintable() or c in "\t\n\r\b\x07\x1b\x00") or c == "\ufffd" for c in output)
    return odd / max(len(output), 1)


def garbled_piece(output: str) -> bool:
    """Whether a part of what was said is no text, though what came before and after may be."""
    pieces = (output[at : at + _PIECE] for at in range(0, len(output), _PIECE // 2))
    return any(len(piece) >= _ENOUGH and garbled(piece) >= _GARBLED_PIECE for piece in pieces)


def diagnose(output: str) -> Alarm | None:
    """The cause that what a console said since power-on shows best, None where nothing does."""
    text = plain(output)
    start = telling("start").search(text)
    # A kernel may set another baud rate than the boot loader.
    recent = text[start.start() if start else 0 :][-4096:]
    share = garbled(recent)
    if len(recent) >= _ENOUGH and (share >= _GARBLED or (start is None and garbled_piece(recent))):
        return patterns().ends["garbled"].seen(last_line(output), count=f"{share:.0%}")
    if start:
        return _of_linux(text[: start.start()], text[start.start() :])
    running = telling("got_over").sub("", text)
    if alarm := _first(running, "waiting", "loader", "shell"):
        return alarm
    trouble = _trouble(running)
    if _comes_again(running):
        return patterns().ends["loop"].seen(trouble.text if trouble else "")
    return trouble


def _of_linux(loader: str, linux: str) -> Alarm:
    """The cause where the kernel has started."""
    ends, failed = patterns().ends, telling("disk").findall(linux)
    if len(failed) >= _FLOOD:
        return ends["flood"].seen(_short(failed[-1]), count=len(failed))
    if alarm := _first(linux, "waiting", "linux", "shell"):
        return alarm
    if userland := telling("userland").search(linux):
        # What a driver could not do did not keep the first program from running.
        trouble = _trouble(linux[userland.start() :])
        return ends["no_login"].seen(trouble.text if trouble else "")
    trouble = _trouble(linux)
    if trouble or len([line for line in linux.split("\n") if not line.startswith("EFI stub: ")]) > _MUTE + 1:
        return trouble or ends["stopped"].seen("")
    before = _first(linux, "loader") or _first(loader, "loader")
    return ends["mute"].seen(before.text if before else "")


def _first(text: str, *groups: str) -> Alarm | None:
    """The first rule that holds, with the last line that shows it."""
    lines = [line for line in text.split("\n") if line.strip()]
    for rule in itertools.chain(*(patterns().rules[group] for group in groups)):
        if rule.unless and re.search(rule.unless, text, re.MULTILINE):
            continue
        among = lines[-rule.within :]
        if rule.over:
            over = [number for number, line in enumerate(among) if re.search(rule.over, line)]
            among = among[over[-1] + 1 if over else 0 :]
        pattern = re.compile("|".join(rule.text))
        shown = [line for line in among if pattern.search(line)]
        if shown:
            return rule.seen(_short(shown[-1]))
    return None


def _comes_again(text: str) -> bool:
    """Whether a console begins anew with what it began with."""
    lines = [line for line in text.split("\n") if line.strip()]
    pairs = [lines[at : at + 2] for at in range(len(lines) - 1)]
    # A console server has a banner of its own before them.
    return any(pair[0] != pair[1] and pair in pairs[at + 2 :] for at, pair in enumerate(pairs[:_BANNER]))


def _trouble(text: str) -> Alarm | None:
    shown = _troubles(text.split("\n"))
    return patterns().ends["trouble"].seen(_short(shown[-1])) if shown else None


def _troubles(lines: Iterable[str]) -> list[str]:
    """The lines that are signs of trouble: those that say why, else the first of all."""
    signs, benign, conclusion = map(telling, ("trouble", "benign", "conclusion"))
    shown = [line for line in lines if signs.search(line) and not benign.search(line)]
    return [line for line in shown if not conclusion.search(line)] or shown[:1]


def _short(line: str) -> str:
    line = "".join(c if c.isprintable() else "?" for c in line.strip())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
