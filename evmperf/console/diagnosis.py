"""Why a failed boot got no further, read from its console afterwards: the cause that a time-out names, never
a failure by itself.
"""

import functools
import itertools
import re
from dataclasses import dataclass

import msgspec

from evmperf.console import signs
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


class _Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cause as patterns.yaml has it."""

    name: str
    text: tuple[str, ...]
    remedy: str = ""
    kind: Kind = Kind.BOARD
    waits: bool = False
    within: int = 0
    over: str = ""


@functools.cache
def _rules(*groups: str) -> list[_Rule]:
    found = (signs.section("rules")[group] for group in groups)
    return msgspec.convert(list(itertools.chain(*found)), list[_Rule])


_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-Z\\^_c])|[\x00\x07]")
_NO_REASON = re.compile(r"(?i)\W*resetting\b|U-Boot (?:SPL )?\d{4}")


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
        for number, (name, texts) in enumerate(signs.section("phases").items())
        if (found := list(re.finditer("|".join(texts), text, re.MULTILINE)))
    ]
    return max(ends)[2] if ends else ""


def garbled(said: str) -> float:
    """The share of characters that are no text: what another baud rate makes of a console."""
    odd = sum(not (c.isprintable() or c in "\t\n\r\b\x07\x1b\x00") or c == "\ufffd" for c in said)
    return odd / max(len(said), 1)


def diagnose(said: str) -> BootCause | None:
    """The cause that what a console said since power-on shows best, None where nothing does."""
    text = plain(said)
    start = signs.said("start").search(text)
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
        got_over = signs.said("got_over").sub("", text)
        return _first(got_over, "waiting", "loader", "shell") or _trouble(text)
    loader, linux = text[: start.start()], text[start.start() :]
    if found := _flood(linux) or _first(linux, "waiting", "linux", "shell"):
        return found
    trouble = _trouble(linux)
    if signs.said("userland").search(linux):
        # What a driver could not do did not keep the first program from running.
        return _silent("the system runs and gives no login", trouble)
    if trouble or linux.count("\n") > _MUTE:
        return trouble or _silent("the kernel stops before its first program", None)
    return _mute(loader, linux)


def _flood(linux: str) -> BootCause | None:
    failed = signs.said("disk").findall(linux)
    if len(failed) < _FLOOD:
        return None
    return BootCause(f"a disk failed {len(failed)} times", _short(failed[-1]), remedy="rewrite or replace it")


def _mute(loader: str, linux: str) -> BootCause | None:
    """Why a kernel was started and never said a word."""
    before = _first(linux, "loader") or _first(loader, "loader")
    return BootCause(
        "the kernel prints nothing",
        before.line if before else "",
        remedy="check the device tree, that it is this board's, and `console=` of the kernel's arguments",
    )


def _silent(name: str, trouble: BootCause | None) -> BootCause:
    """How far Linux got, and the last line that may say why."""
    remedy = "check `console=` of the kernel's arguments, and that a getty is on it"
    return BootCause(name, trouble.line if trouble else "", remedy=remedy)


def _first(text: str, *groups: str) -> BootCause | None:
    """The first rule that holds, with the last line that shows it."""
    lines = [line for line in text.split("\n") if line.strip()]
    for rule in _rules(*groups):
        among = lines[-rule.within :]
        if rule.over:
            over = [number for number, line in enumerate(among) if re.search(rule.over, line)]
            among = among[over[-1] + 1 if over else 0 :]
        pattern = re.compile("|".join(rule.text))
        shown = [line for line in among if pattern.search(line)]
        if shown:
            return BootCause(rule.name, _short(shown[-1]), rule.kind, rule.remedy, rule.waits)
    return None


def _trouble(text: str) -> BootCause | None:
    signs = [line for line in text.split("\n") if _is_trouble(line)]
    return BootCause("the last sign of trouble is", _short(signs[-1])) if signs else None


def _is_trouble(line: str) -> bool:
    return bool(signs.said("trouble").search(line) and not signs.said("benign").search(line))


def _short(line: str) -> str:
    line = "".join(c if c.isprintable() else "?" for c in line.strip())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
