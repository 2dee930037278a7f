"""What was held up on its way to the lab's host: the bounds of stamps, seen from what came after.

A server (or a kernel) that was kept from running hands on what waits in several pieces, the first
of which looks like any other. The next ones give it away: they are more than the line can have
carried since the one before. All of them may have waited since the last piece before the pause.
"""

from collections.abc import Sequence
from dataclasses import replace

from evmperf.console.record import ConsoleRecord, Line

_SLACK_NS = 500_000
"""By how much a piece may be early without that being evidence."""
_NEAR_NS = 100_000_000
"""So long before and after a hold-up at least, others of that size may have come unseen."""
_MUCH = 3
"""A pause may be longer than what was held up, as a board need not talk all the time: what is near
it is supposed to have been held up for so many times what the line needs for what came then.
"""


def widened(records: Sequence[ConsoleRecord], baud: int) -> list[ConsoleRecord]:
    """The records of a line of that rate, with bounds that have what was held up."""
    said = [record for record in records if record.kind == "<"]
    bounds = [record.bound_ns for record in said]
    line, late_ns = Line(baud), 0
    sizes: dict[int, int] = {}
    """Of hold-ups, by when something is near one."""
    first = done = 0
    for number, record in enumerate(said):
        before, late_ns = late_ns, line.late_ns(record.mono_ns, len(record.data))
        gap_ns = record.mono_ns - said[max(number - 1, 0)].mono_ns
        if not number or late_ns <= gap_ns + _SLACK_NS:
            first = number
            continue
        last = said[max(first - 1, 0)]
        since = last.mono_ns - last.bound_ns
        for held in range(max(first, done), number + 1):
            bounds[held] = max(bounds[held], said[held].mono_ns - since)
        done = number + 1
        size = min(record.mono_ns - since, _MUCH * max(before, late_ns))
        for near in range(said[first].mono_ns // _NEAR_NS - 1, record.mono_ns // _NEAR_NS + 2):
            sizes[near] = max(sizes.get(near, 0), size)
    known = iter(bounds)
    return [
        replace(r, bound_ns=max(next(known), sizes.get(r.mono_ns // _NEAR_NS, 0))) if r.kind == "<" else r
        for r in records
    ]
