"""An earlier run's console read again, with the marks and the watch of today."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evmperf.boards.console.marks import Phase, allowed_s, find
from evmperf.boards.console.record import BEGINNINGS, ConsoleRecord
from evmperf.boards.console.signs import Alarm
from evmperf.boards.console.tree import Tree, grow
from evmperf.boards.console.watch import Watch
from evmperf.model.records import BootMark, BootRecord

_AT_PROMPT = re.compile(rb"[\r\n][^\r\n]{0,40}[=#>] *$")
_PROMPT_BYTES = 64


@dataclass(frozen=True)
class Reviewed:
    """One power-on: marks, first alarm, other `notes`, differences from the record, and its tree."""

    number: int
    marks: Mapping[Phase, BootMark]
    alarm: Alarm | None
    notes: Sequence[str]
    changes: Sequence[str]
    tree: Tree


def boots(records: Iterable[ConsoleRecord]) -> Iterable[list[ConsoleRecord]]:
    """The records from each power-on to the next; what comes before the first is no boot."""
    boot: list[ConsoleRecord] = []
    for record in records:
        if record.kind == "#" and record.data.decode("utf-8", "replace") in BEGINNINGS:
            if boot:
                yield boot
            boot = [record]
        elif boot:
            boot.append(record)
    if boot:
        yield boot


def review(
    number: int, records: Sequence[ConsoleRecord], prompts: Sequence[str], before: BootRecord | None
) -> Reviewed:
    """Read one boot again; `prompts` may end it, `before` is the run's record of it, or None."""
    marks: dict[Phase, BootMark] = {}
    for prompt in prompts:
        marks = find(records, prompt)
        if Phase.PROMPT in marks:
            break
    alarm, notes = _watched(records, marks)
    return Reviewed(number, marks, alarm, notes, list(_changes(marks, before)), grow(records, marks))


def _watched(
    records: Sequence[ConsoleRecord], marks: Mapping[Phase, BootMark]
) -> tuple[Alarm | None, list[str]]:
    """What the watch makes of a boot: U-Boot awaited if something was typed, Linux from its mark on."""
    watch = Watch()
    if any(record.kind == ">" for record in records):
        watch.await_uboot()
    watch.restart()
    output = b""
    for record in records:
        if record.kind == ">" and record.data.strip() and _AT_PROMPT.search(output):
            watch.settle()
            output = b""
        if record.kind == "<":
            output = (output + record.data)[-_PROMPT_BYTES:]
            if alarm := watch.feed(record.data):
                return alarm, watch.notes
        if Phase.PROMPT in marks and record.mono_ns >= marks[Phase.PROMPT].mono_ns:
            watch.arrive()
    return None, watch.notes


def _changes(marks: Mapping[Phase, BootMark], before: BootRecord | None) -> Iterable[str]:
    timed = [mark for mark in marks.values() if mark.phase != Phase.POWER_ON]
    allowed = allowed_s((timed[-1].mono_ns - timed[0].mono_ns) / 1e9) if timed else 0.0
    for mark in timed:
        if mark.error_s > allowed:
            yield f"{mark.phase} may be {mark.error_s * 1000:.0f} ms off"
    if before is None:
        return
    then = {mark.phase: mark for mark in before.marks}
    for phase in map(str, Phase):
        now = marks.get(Phase(phase))
        if now is None and phase in then:
            yield f"{phase} is no longer a mark"
        elif now is not None and phase not in then:
            yield f"{phase} is new"
        elif now is not None and abs(now.mono_ns - then[phase].mono_ns) > 1_000_000:
            moved = (now.mono_ns - then[phase].mono_ns) / 1e9
            yield f"{phase} moves by {moved:+.3f} s"
