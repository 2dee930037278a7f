"""Boot marks: when each phase of a boot showed on the console.

A mark is the arrival time of the last byte of the text that announces the phase, found after the
fact in the stamped record. That is what the guides' figures are: the host's clock when "Starting
kernel" and when the prompt had been received (inventory, evidence V: boot_time.rb).
"""

from __future__ import annotations

import bisect
import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evmperf.console.record import POWER_ANSWERED, POWER_ON, Record


class Phase(enum.StrEnum):
    """The phases of a boot in their order."""

    POWER_ON = "power_on"
    FIRST_OUTPUT = "first_output"
    SPL_BANNER = "spl_banner"
    UBOOT_BANNER = "uboot_banner"
    AUTOBOOT = "autoboot"
    STARTING_KERNEL = "starting_kernel"
    FIRST_KERNEL_LINE = "first_kernel_line"
    ROOT_MOUNTED = "root_mounted"
    INIT_STARTED = "init_started"
    PROMPT = "prompt"


@dataclass(frozen=True)
class Mark:
    """When a phase showed: `mono_ns` on CLOCK_MONOTONIC, `wall_ns` since the epoch.

    `error_s` is how far off the mark is at most (seconds): what announced the phase, `text`,
    arrived at most so long before. The power came on at most so long after `power_on`.
    """

    phase: Phase
    mono_ns: int
    wall_ns: int
    error_s: float
    text: str


_TEXTS: tuple[tuple[Phase, re.Pattern[bytes]], ...] = (
    (Phase.SPL_BANNER, re.compile(rb"U-Boot SPL \d{4}\.\d\d[^\r\n]*")),
    (Phase.UBOOT_BANNER, re.compile(rb"U-Boot \d{4}\.\d\d[^\r\n]*")),
    (Phase.AUTOBOOT, re.compile(rb"stop autoboot")),
    (Phase.STARTING_KERNEL, re.compile(rb"Starting kernel")),
    (Phase.FIRST_KERNEL_LINE, re.compile(rb"\[ +0\.\d{6}\]")),
    (Phase.ROOT_MOUNTED, re.compile(rb"VFS: Mounted root|EXT4-fs \([^)]*\): mounted filesystem")),
    # The first user process: with an initial RAM disk that is its /init, before the root's mount.
    (
        Phase.INIT_STARTED,
        re.compile(rb"Run /\S+ as init|systemd\[1\]: systemd \S+ running|INIT: version"),
    ),
)


def find(records: Sequence[Record], prompt: str) -> dict[Phase, Mark]:
    """Marks of one boot in the record since its power-on; phases that did not show are absent.

    Each text is searched behind the mark of the phase before it, so that a second banner (a reset
    in mid-boot) does not move an earlier mark; root and init come in either order. `prompt` is the
    regular expression of what ends the boot: the login prompt, or the shell's when init is a shell.
    """
    output = [record for record in records if record.kind == "<" and record.data]
    data = b"".join(record.data for record in output)
    ends: list[int] = []
    position = 0
    for record in output:
        position += len(record.data)
        ends.append(position)

    marks: dict[Phase, Mark] = {}
    power = _power_on(records)
    if power:
        marks[Phase.POWER_ON] = power
    if output:
        marks[Phase.FIRST_OUTPUT] = _mark(Phase.FIRST_OUTPUT, output[0], "")
    start = 0
    for phase, pattern in (*_TEXTS, (Phase.PROMPT, re.compile(prompt.encode()))):
        if phase is Phase.PROMPT and Phase.STARTING_KERNEL not in marks:
            break  # a prompt before Linux is U-Boot's
        match = pattern.search(data, start)
        if match:
            at = output[bisect.bisect_left(ends, match.end())]
            marks[phase] = _mark(phase, at, match.group().decode("utf-8", "replace"))
            if phase not in (Phase.ROOT_MOUNTED, Phase.INIT_STARTED):
                start = match.end()
    return marks


def seconds(marks: dict[Phase, Mark], begin: Phase, end: Phase) -> float | None:
    """Seconds between two marks, None if either is missing."""
    if begin not in marks or end not in marks:
        return None
    return (marks[end].mono_ns - marks[begin].mono_ns) / 1e9


def last_phase(marks: Iterable[Phase]) -> Phase | None:
    """The latest phase among those seen: where a boot that failed got to."""
    order = list(Phase)
    return max(marks, key=order.index, default=None)


def _power_on(records: Sequence[Record]) -> Mark | None:
    told: Record | None = None
    for record in records:
        if record.kind == "#" and record.data == POWER_ON.encode():
            told = record
        elif told and record.kind == "#" and record.data == POWER_ANSWERED.encode():
            return replace(
                _mark(Phase.POWER_ON, told, POWER_ON),
                error_s=(record.mono_ns - told.mono_ns) / 1e9,
            )
    return _mark(Phase.POWER_ON, told, POWER_ON) if told else None


def _mark(phase: Phase, record: Record, text: str) -> Mark:
    return Mark(phase, record.mono_ns, record.wall_ns, record.bound_ns / 1e9, text)
