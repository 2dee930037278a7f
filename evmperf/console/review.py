"""An earlier run's console read again, with the marks and the watch of today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evmperf.console.marks import ALLOWED_S, Mark, Phase, find
from evmperf.console.record import POWER_ON, Record
from evmperf.console.watch import Alarm, Watch
from evmperf.model.records import BootRecord


@dataclass(frozen=True)
class Reviewed:
    """One power-on: its marks, the first alarm, and what differs from what was recorded then."""

    number: int
    marks: Mapping[Phase, Mark]
    alarm: Alarm | None
    changes: Sequence[str]


def boots(records: Iterable[Record]) -> Iterable[list[Record]]:
    """The records from each power-on to the next; what comes before the first is no boot."""
    boot: list[Record] = []
    for record in records:
        if record.kind == "#" and record.data == POWER_ON.encode():
            if boot:
                yield boot
            boot = [record]
        elif boot:
            boot.append(record)
    if boot:
        yield boot


def review(
    number: int, records: Sequence[Record], prompts: Sequence[str], before: BootRecord | None
) -> Reviewed:
    """Read one boot again. `prompts` are what may end it, the first that shows; `before` is what
    the run recorded of it (docs/data-model.md), None where that is not known.
    """
    marks: dict[Phase, Mark] = {}
    for prompt in prompts:
        marks = find(records, prompt)
        if Phase.PROMPT in marks:
            break
    return Reviewed(number, marks, _first_alarm(records), list(_changes(marks, before)))


def _first_alarm(records: Sequence[Record]) -> Alarm | None:
    watch = Watch()
    watch.restart()
    for record in records:
        if record.kind == ">" and b"boot" in record.data:
            watch.settle()
        if record.kind == "<" and (alarm := watch.feed(record.data)):
            return alarm
    return None


def _changes(marks: Mapping[Phase, Mark], before: BootRecord | None) -> Iterable[str]:
    late = [m for m in marks.values() if m.phase is not Phase.POWER_ON and m.error_s > ALLOWED_S]
    for mark in late:
        yield f"{mark.phase} may be {mark.error_s * 1000:.0f} ms off"
    if before is None:
        return
    then = {mark.phase: mark for mark in before.marks}
    for phase in map(str, Phase):
        now = marks.get(Phase(phase))
        if now is None and phase in then:
            yield f"{phase} is no mark any more"
        elif now is not None and phase not in then:
            yield f"{phase} is new"
        elif now is not None and abs(now.mono_ns - then[phase].mono_ns) > 1_000_000:
            moved = (now.mono_ns - then[phase].mono_ns) / 1e9
            yield f"{phase} moves by {moved:+.3f} s"
