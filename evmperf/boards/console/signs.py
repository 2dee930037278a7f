"""What a console says when something goes wrong: signs while a board boots, and why a failed boot got no
further, read from its console afterwards: the cause that a time-out names, never a failure by itself.

The texts are in patterns.yaml. Those of a boot are one regular expression over the stream (`events`). A sign
that needs lines after it, or a reason from the lines before, gets them from the watch.
"""

import enum
import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

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


_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-Z\\^_c])|[\x00\x07]")
_NO_REASON = re.compile(r"(?i)\W*resetting\b|U-Boot (?:SPL )?\d{4}")
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
    """Which sign of trouble before it is its reason, `first` or `last`; "" for none."""
    within: int = 0
    """The number of last lines that may show it, 0 for all."""
    over: str = ""
    """A line that shows that it was overcome."""

    def seen(self, text: str, after: str = "", count: object = "") -> Alarm:
        """The alarm of this sign in a line."""
        name = self.name.replace("@count@", str(count))
        return Alarm(name, text, self.kind, self.remedy, self.permanent, after)


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
    text = Path(__file__).with_name("patterns.yaml").read_text("utf-8")
    return msgspec.convert(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)), Patterns)


@functools.cache
def telling(what: str) -> re.Pattern[str]:
    """One of the texts of patterns.yaml, to be looked for in lines."""
    return re.compile("|".join(patterns().texts[what]), re.MULTILINE)


def groups() -> list[str]:
    """Everything that tells something, each a named group."""
    texts = {key: sign.text for key, sign in patterns().signs.items()} | patterns().events
    found = "\n".join(f"(?P<{key}>{'|'.join(text)})" for key, text in texts.items())
    for name in ("begin", "line", "kernel"):
        found = found.replace(f"@{name}@", patterns().fragments[name])
    return found.split("\n")


@functools.cache
def events() -> re.Pattern[bytes]:
    """One pattern for all; takes 10 ms to compile, of no use where no board is."""
    return re.compile(f"{_FIRST}(?:{'|'.join(groups())})".encode("latin-1"))


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
    shown = [line for line in lines if _is_trouble(line)]
    return _short((shown or lines or [""])[0 if first and shown else -1])


def phase(said: str) -> str:
    """The program of the boot that spoke last, "" where none has said its name."""
    text = plain(said)
    ends = [
        (found[-1].end(), number, name)
        for number, (name, texts) in enumerate(patterns().phases.items())
        if (found := list(re.finditer("|".join(texts), text, re.MULTILINE)))
    ]
    return max(ends)[2] if ends else ""


def garbled(said: str) -> float:
    """The share of characters that are no text: what another baud rate makes of a console."""
    odd = sum(not (c.isprintable() or c in "\t\n\r\b\x07\x1b\x00") or c == "\ufffd" for c in said)
    return odd / max(len(said), 1)


def diagnose(said: str) -> Alarm | None:
    """The cause that what a console said since power-on shows best, None where nothing does."""
    text, ends = plain(said), patterns().ends
    start = telling("start").search(text)
    # A kernel may set another baud rate than the boot loader.
    recent = text[start.start() if start else 0 :][-4096:]
    if len(recent) >= _ENOUGH and (share := garbled(recent)) >= _GARBLED:
        return ends["garbled"].seen(last_line(said), count=f"{share:.0%}")
    if start is None:
        got_over = telling("got_over").sub("", text)
        return _first(got_over, "waiting", "loader", "shell") or _trouble(text)
    loader, linux = text[: start.start()], text[start.start() :]
    failed = telling("disk").findall(linux)
    flood = ends["flood"].seen(_short(failed[-1]), count=len(failed)) if len(failed) >= _FLOOD else None
    if found := flood or _first(linux, "waiting", "linux", "shell"):
        return found
    trouble = _trouble(linux)
    if telling("userland").search(linux):
        # What a driver could not do did not keep the first program from running.
        return ends["no_login"].seen(trouble.text if trouble else "")
    if trouble or linux.count("\n") > _MUTE:
        return trouble or ends["stopped"].seen("")
    before = _first(linux, "loader") or _first(loader, "loader")
    return ends["mute"].seen(before.text if before else "")


def _first(text: str, *groups: str) -> Alarm | None:
    """The first rule that holds, with the last line that shows it."""
    lines = [line for line in text.split("\n") if line.strip()]
    for rule in itertools.chain(*(patterns().rules[group] for group in groups)):
        among = lines[-rule.within :]
        if rule.over:
            over = [number for number, line in enumerate(among) if re.search(rule.over, line)]
            among = among[over[-1] + 1 if over else 0 :]
        pattern = re.compile("|".join(rule.text))
        shown = [line for line in among if pattern.search(line)]
        if shown:
            return rule.seen(_short(shown[-1]))
    return None


def _trouble(text: str) -> Alarm | None:
    shown = [line for line in text.split("\n") if _is_trouble(line)]
    return patterns().ends["trouble"].seen(_short(shown[-1])) if shown else None


def _is_trouble(line: str) -> bool:
    return bool(telling("trouble").search(line) and not telling("benign").search(line))


def _short(line: str) -> str:
    line = "".join(c if c.isprintable() else "?" for c in line.strip())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
