"""Where the time of one boot went: its phases, and in them what took longest, by the clocks there are.

| clock | what it times |
|---|---|
| console | arrival of the lines: phases between marks, and silences after a line |
| kernel | time stamps of the kernel's messages (printk.time), and of its initcalls (`initcall_debug`) |
| systemd | the starts of its units (`systemd-analyze blame`) |
| U-Boot | its bootstage report (CONFIG_BOOTSTAGE_REPORT), in microseconds since reset, or what it left in the
device tree (CONFIG_BOOTSTAGE_FDT) |
"""

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evmperf.boards.console.marks import Phase
from evmperf.boards.console.record import ConsoleRecord
from evmperf.model.errors import RefusedOutput
from evmperf.model.records import BootMark

_SILENCE_S = 0.02
"""What may be a part of its own."""
_MOST = 40
"""Parts of one phase that are kept, the longest."""
_CHARS = 80
_STAMPED = re.compile(r"(?:<\d+>)?\[ *(\d{1,6}\.\d{6})\](?:\[[^\]]{1,12}\])? (.*)")
INITCALLS = "dmesg | grep -E 'initcall .* after ([5-9][0-9]{3}|[0-9]{5,}) usecs|Run /.* as init'"
"""Asks a board that was booted with `initcall_debug` for its initcalls of at least 5 ms: their messages are
below the level that a console shows.
"""
TIMED = "initcall_debug log_buf_len=8M"
"""Arguments with which a kernel times its initcalls, and keeps all of them."""
CONSOLE, KERNEL, UBOOT = "console", "kernel", "U-Boot"
"""Clocks."""
_INITCALL = re.compile(r"initcall (\w{1,120})[^\s\[]*( \[\w{1,60}\])? returned -?\d+ after (\d{1,12}) usecs")
_INIT = re.compile(r"Run /\S+ as init")
_KERNEL = (Phase.FIRST_KERNEL_LINE, Phase.STARTING_KERNEL, Phase.EFI_STUB)
_OF_UBOOT = (Phase.UBOOT_BANNER, Phase.STARTING_KERNEL)
_STAGE = re.compile(r" *(\d[\d,]{0,14}) +(\d[\d,]{0,14})  (\S[^\[]*)")
_ACCUMULATED = re.compile(r" *\d[\d,]{0,14}  \S[^\[]*")
_REPORT = "Timer summary in microseconds"
_RECORDS = re.compile(r"\((\d{1,6}) records\)")
_ESCAPES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\r")
_JOB = re.compile(r"A start job is running for (.{1,60}?) \(\d")
_SIGNS = (
    (
        re.compile(r"recovery complete|recovering journal"),
        "the file system's journal was replayed: the board was not shut down",
    ),
    (
        re.compile(r"(?i)first boot|resiz\w* (?:root )?file ?system|generat\w+ .{0,20}key"),
        "units of a first boot ran (keys, resize)",
    ),
)
"""What is said of a boot that is not like the others."""
_LONG_SILENCE_S = 2.0
_TELLING_S = 1.0
"""Time over which two clocks are held against each other, at least."""
_LATE_S = 0.1
"""A console that shows a message so long after it was said holds messages back."""


@dataclass(frozen=True)
class Part:
    """Something that took `seconds` of a phase by a clock; `until` is the line that ended a pause."""

    phase: str
    name: str
    seconds: float
    clock: str
    until: str = ""

    @property
    def what(self) -> str:
        """Its name, and the line that ended it."""
        return f"{self.name}, until {self.until!r}" if self.until else self.name

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s in {self.phase}: {self.what} ({self.clock})"


@dataclass(frozen=True)
class Tree:
    """Parts of each phase (to the next mark), the longest first; `notes` on clocks and gaps."""

    phases: Mapping[str, float]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    def longest(self, begin: Phase, end: Phase, count: int = 5) -> list[Part]:
        """The longest parts between two marks; phases of which no part is known stand for themselves."""
        since = itertools.dropwhile(lambda phase: phase != begin, self.phases)
        inside = list(itertools.takewhile(lambda phase: phase != end, since))
        parts = [part for part in self.parts if part.phase in inside]
        explained = {part.phase for part in parts}
        parts += [
            Part(p, _whole(p, self.phases[p]), self.phases[p], CONSOLE) for p in inside if p not in explained
        ]
        return sorted(parts, key=lambda part: -part.seconds)[:count]

    def beyond(self, other: "Tree") -> list[Part]:
        """What took longer than in another boot, by how much, the longest first."""
        usual = {(part.phase, _unnumbered(part.name)): part.seconds for part in other.parts}
        more = [
            replace(part, seconds=part.seconds - usual.get((part.phase, _unnumbered(part.name)), 0.0))
            for part in self.parts
        ]
        explained = {part.phase for part in more if part.seconds >= _SILENCE_S}
        more += [
            Part(p, _whole(p, seconds), seconds - other.phases[p], CONSOLE)
            for p, seconds in self.phases.items()
            if p in other.phases and p not in explained
        ]
        return sorted((part for part in more if part.seconds >= _SILENCE_S), key=lambda part: -part.seconds)


def _whole(phase: str, seconds: float) -> str:
    """The name of a phase of which no part is known."""
    if phase == Phase.POWER_ON and seconds > _LONG_SILENCE_S:
        return "nothing is printed: the ROM tries media in the order of the boot switches"
    return "all of it"


def _unnumbered(name: str) -> str:
    return re.sub(r"\d+", "", name)


@dataclass(frozen=True)
class _Line:
    """A line that the board said: when its last byte came (ns), and what the kernel's clock says (s)."""

    mono_ns: int
    text: str
    kernel_s: float | None


def grow(
    records: Sequence[ConsoleRecord],
    marks: Mapping[Phase, BootMark],
    units: Iterable[tuple[str, float]] = (),
    kernel_log: str = "",
    chain: Collection[str] = (),
    *,
    stashed: Sequence[tuple[str, float]] = (),
) -> Tree:
    """The tree of a boot; `units` are systemd's with seconds, those of `chain` on its critical chain;
    `kernel_log` may have the initcalls, and what was asked after the prompt; `stashed` are stages that
    U-Boot left in the device tree.
    """
    lines = list(_lines(records))
    ended_ns = max((mark.mono_ns for mark in marks.values()), default=0)
    asked = (line for line in lines if line.mono_ns > ended_ns)
    log = [*asked, *_lines([ConsoleRecord(0, 0, "<", kernel_log.encode())])]
    before_init = itertools.takewhile(lambda line: not _INIT.match(line.text), log)
    stages = [(part.name, part.seconds) for part in _stages("", lines)] or stashed
    calls = list(_initcalls(next((p for p in _KERNEL if p in marks), Phase.PROMPT), [*before_init]))
    # With an initial RAM disk, init comes before the root.
    spans = list(itertools.pairwise(sorted(marks.values(), key=lambda mark: mark.mono_ns)))
    phases = {a.phase: (b.mono_ns - a.mono_ns) / 1e9 for a, b in spans}
    parts: list[Part] = []
    for a, b in spans:
        inside = [line for line in lines if a.mono_ns <= line.mono_ns < b.mono_ns]
        at_end = (line for line in lines if line.mono_ns >= b.mono_ns and b.text[:_CHARS] in line.text)
        inside.append(_Line(b.mono_ns, "", next((line.kernel_s for line in at_end if b.text), None)))
        candidates = list(_initcalls(a.phase, inside)) or [call for call in calls if call.phase == a.phase]
        candidates = candidates or list(_stages(a.phase, inside))
        if a.phase == Phase.UBOOT_BANNER and stages is stashed:
            candidates = [Part(a.phase, name, seconds, UBOOT) for name, seconds in stashed]
        candidates = candidates or list(_silences(a.phase, inside))
        if a.phase == Phase.INIT_STARTED:
            side = "beside its critical chain" if chain else "side by side"
            sides = {
                name: f"systemd, {'on its critical chain' if name in chain else side}" for name, _ in units
            }
            candidates += [Part(a.phase, name, seconds, sides[name]) for name, seconds in units]
        parts += sorted(candidates, key=lambda part: -part.seconds)[:_MOST]
    signs = [what for sign, what in _SIGNS if any(sign.search(line.text) for line in lines)]
    notes = [
        *signs,
        *_drift([line for line in lines if line.kernel_s is not None and line.mono_ns <= ended_ns]),
        *_of_uboot(marks, stages),
        *_missing(marks, [*lines, *log], is_staged=bool(stages)),
    ]
    return Tree(phases, tuple(parts), tuple(notes))


def timed(records: Sequence[ConsoleRecord], marks: Mapping[Phase, BootMark]) -> dict[tuple[str, str], float]:
    """Seconds of each phase, initcall and stage of U-Boot of a boot, by clock and name; those of one name
    together.
    """
    lines = list(_lines(records))
    spans = itertools.pairwise(sorted(marks.values(), key=lambda mark: mark.mono_ns))
    times = {(CONSOLE, str(a.phase)): (b.mono_ns - a.mono_ns) / 1e9 for a, b in spans}
    # The console may show a message, and the log again.
    once = {(line.kernel_s, line.text): line for line in lines}
    for part in (*_initcalls("", [*once.values()]), *_stages("", lines)):
        key = part.clock, part.name
        times[key] = times.get(key, 0.0) + part.seconds
    return times


def _lines(records: Sequence[ConsoleRecord]) -> Iterator[_Line]:
    rest = b""
    for record in records:
        if record.kind != "<":
            continue
        *whole, rest = (rest + record.data).split(b"\n")
        for data in whole:
            text = _ESCAPES.sub("", data.decode("utf-8", "replace"))
            stamped = _STAMPED.fullmatch(text)
            message = stamped[2] if stamped else text
            chars = None if message.startswith("initcall ") else _CHARS
            yield _Line(record.mono_ns, message[:chars], float(stamped[1]) if stamped else None)


def _initcalls(phase: str, lines: Sequence[_Line]) -> Iterator[Part]:
    for line in lines:
        if call := _INITCALL.match(line.text):
            yield Part(phase, f"initcall {call[1]}{call[2] or ''}", int(call[3]) / 1e6, KERNEL)


def _stages(phase: str, lines: Sequence[_Line]) -> Iterator[Part]:
    with contextlib.suppress(RefusedOutput):
        for stage, seconds in bootstages("\n".join(line.text for line in lines)):
            yield Part(phase, stage, seconds, UBOOT)


def bootstages(text: str) -> list[tuple[str, float]]:
    """Stages of U-Boot's bootstage report (common/bootstage.c) with their seconds since the stage before,
    which two columns tell; raises RefusedOutput where they differ, without a report, and for one that is cut:
    it states its number of records. Those of SPL that U-Boot took over count there and are not all printed.
    """
    lines = itertools.dropwhile(lambda line: not line.startswith(_REPORT), text.split("\n"))
    head, *rows = *itertools.takewhile(str.strip, lines), ""
    stages, before_us = [], 0
    for line in rows[1:-1]:
        row = _STAGE.fullmatch(line)
        mark_us, elapsed_us = (int(n.replace(",", "")) for n in row.groups()[:2]) if row else (0, -1)
        if not row or mark_us - before_us != elapsed_us:
            raise RefusedOutput("U-Boot's report of its stages is damaged", text)
        stages.append((row[3], elapsed_us / 1e6))
        before_us = mark_us
    if stated := _RECORDS.search(head):
        is_whole = next(lines, "") == "Accumulated time:"
        missing = int(stated[1]) - len(stages) - len([*itertools.takewhile(_ACCUMULATED.fullmatch, lines)])
        took_over = any(stage == "end phase" for stage, _ in stages)
        if not is_whole or missing < 0 or (missing and not took_over):
            raise RefusedOutput("U-Boot's report of its stages is cut", text)
    if not stages:
        raise RefusedOutput("U-Boot printed no report of its stages", text)
    return stages


def _silences(phase: str, lines: Sequence[_Line]) -> Iterator[Part]:
    """The slow part after a line, by the kernel's clock where both lines have it."""
    last, pauses, counts = "", dict[tuple[str, str], float](), Counter[str]()
    ends: dict[str, str] = {}
    for before, after in itertools.pairwise(lines):
        last = before.text.strip() or last
        both = before.kernel_s is not None and after.kernel_s is not None
        seconds = (after.mono_ns - before.mono_ns) / 1e9
        if both:
            seconds = (after.kernel_s or 0.0) - (before.kernel_s or 0.0)
        if seconds >= _SILENCE_S:
            # A job's line is told again and again, and ends with what follows it.
            job = _JOB.search(after.text) or _JOB.search(last)
            name = f"A start job is running for {job[1]}" if job else f"after {last!r}"
            key = name, KERNEL if both else CONSOLE
            pauses[key] = pauses.get(key, 0.0) + seconds
            counts[name] += 1
            ends[name] = "" if job or counts[name] > 1 else after.text.strip()
    for (name, clock), seconds in pauses.items():
        times = f" ({counts[name]} times)" if counts[name] > 1 else ""
        yield Part(phase, name + times, seconds, clock, ends[name])


def _drift(lines: Sequence[_Line]) -> Iterator[str]:
    """How the kernel's clock goes beside the console's, by the soonest messages of the first and last third,
    and where the console is late.
    """
    delays = [(line.mono_ns / 1e9 - (line.kernel_s or 0.0), line) for line in lines]
    third = len(delays) // 3
    if not third:
        return
    first, last = (min(part, key=lambda d: d[0]) for part in (delays[:third], delays[-third:]))
    said_s = (last[1].kernel_s or 0.0) - (first[1].kernel_s or 0.0)
    seen_s = (last[1].mono_ns - first[1].mono_ns) / 1e9
    if min(said_s, seen_s) > _TELLING_S:
        rate = f"{said_s / seen_s:.4f} s per second of the console's, over {seen_s:.1f} s"
        yield f"the kernel's clock runs at {rate}"
    soonest = min(delay for delay, _ in delays)
    late, line = max(delays, key=lambda d: d[0])
    if late - soonest > _LATE_S:
        yield (
            f"the console is up to {late - soonest:.3f} s late: {line.text.strip()!r} was printed "
            f"at {line.kernel_s:.3f} s of the kernel's clock (held back until the console's driver "
            f"started, or by an asynchronous console)"
        )


def _of_uboot(marks: Mapping[Phase, BootMark], stages: Sequence[tuple[str, float]]) -> Iterator[str]:
    """U-Boot's own time until it starts the kernel beside the console's."""
    names = [name.partition(" ")[0] for name, _ in stages]
    if not ({"board_init_f", "start_kernel"} <= set(names) and {*_OF_UBOOT} <= set(marks)):
        return
    begin = len(names) - names[::-1].index("board_init_f")
    own_s = sum(seconds for _, seconds in stages[begin : names.index("start_kernel") + 1])
    seen_s = (marks[_OF_UBOOT[1]].mono_ns - marks[_OF_UBOOT[0]].mono_ns) / 1e9
    yield (
        f"U-Boot to the kernel's start: {own_s:.3f} s by U-Boot's clock (board_init_f to start_kernel), "
        f"{seen_s:.3f} s by the console's ({' to '.join(_OF_UBOOT)}): {abs(own_s - seen_s):.3f} s apart"
    )


def _missing(marks: Mapping[Phase, BootMark], lines: Sequence[_Line], *, is_staged: bool) -> Iterator[str]:
    """What nothing on this console tells."""
    if absent := [p for p in (Phase.SPL_BANNER, Phase.TF_A, Phase.OP_TEE, Phase.A53_SPL) if p not in marks]:
        yield f"no messages of {', '.join(absent)} (no such stage, or built without them)"
    if not any(line.kernel_s is not None for line in lines):
        yield "no message has the kernel's clock: the kernel is quiet, or runs without printk.time"
    if not any(_INITCALL.match(line.text) for line in lines):
        yield f"initcalls are not timed: boot with the arguments {TIMED}"
    if not is_staged:
        yield "U-Boot's stages are not timed: it is built without CONFIG_BOOTSTAGE_REPORT and _FDT"
