"""What a console says when something must not come: each a text, where in a boot it means
trouble, who has to act, and what to do; and what else tells how far a boot is.

The texts are in patterns.yaml. All are one regular expression over the stream (`events`). A sign that needs
lines after it, or a reason from the lines before, gets them from the watch.
"""

import enum
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from evmperf.model.errors import Kind


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


class Sign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that means trouble in these stages of a boot, as patterns.yaml has it."""

    name: str
    text: tuple[str, ...]
    stages: frozenset[Stage]
    kind: Kind = Kind.BOARD
    remedy: str = ""
    permanent: bool = False
    twice: bool = False
    """Whether it happens once in a healthy boot, too."""
    explained: str = ""
    """Which sign of trouble before it is its reason, `first` or `last`; "" for none."""


@functools.cache
def section(name: str) -> Any:
    """A section of patterns.yaml."""
    file = Path(__file__).with_name("patterns.yaml")
    return yaml.load(file.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))[name]


@functools.cache
def said(what: str) -> re.Pattern[str]:
    """One of the texts of patterns.yaml, to be looked for in lines."""
    return re.compile("|".join(section("texts")[what]), re.MULTILINE)


@functools.cache
def signs() -> Mapping[str, Sign]:
    """What is an alarm by itself, in the stages where it is one."""
    return msgspec.convert(section("signs"), dict[str, Sign])


_FIRST = r"(?=[\x00-\x1f\x80-\xff\[\"#ABCELPS])"
"""What any event begins with; without it each byte is held against all events, at 3 us a byte."""


def patterns() -> list[str]:
    """Everything that tells something, each a named group."""
    texts = {key: sign.text for key, sign in signs().items()} | section("events")
    found = "\n".join(f"(?P<{key}>{'|'.join(text)})" for key, text in texts.items())
    for name in ("begin", "line", "kernel"):
        found = found.replace(f"@{name}@", section("fragments")[name])
    return found.split("\n")


@functools.cache
def events() -> re.Pattern[bytes]:
    """One pattern for all; takes 10 ms to compile, of no use where no board is."""
    return re.compile(f"{_FIRST}(?:{'|'.join(patterns())})".encode("latin-1"))
