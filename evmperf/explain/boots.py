"""What took longest in a boot, for who asks why its time is what it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evmperf.benchmarks.families.boot import SPANS
from evmperf.benchmarks.tools import systemd_analyze
from evmperf.boards.console import record, review, tree
from evmperf.boards.console.marks import Phase
from evmperf.boards.console.record import ConsoleRecord
from evmperf.explain.answers import Answer
from evmperf.measure.runs import spool
from evmperf.measure.runs.spool import CONSOLE_LOG
from evmperf.measure.state.finding import Finding
from evmperf.model.errors import LabError, RefusedOutput
from evmperf.model.records import BootMark, BootRecord
from evmperf.model.results import Result

_INITCALL = "initcall "
_PROOFS = (
    (Phase.STARTING_KERNEL, "CONFIG_BOOTSTAGE_REPORT=y in U-Boot's configuration"),
    (Phase.INIT_STARTED, "evmperf ab BOARD.yaml -k boot_time --b args:initcall_debug"),
    (Phase.PROMPT, "systemd-analyze blame, on the board"),
)
"""What tells more of a part before a phase."""
_LEAST_S = 0.001
_SLOW = 1.3
"""How many times longer than the mean a boot takes that needs an explanation."""
_STARTS = (Phase.STARTING_KERNEL, Phase.EFI_STUB, Phase.FIRST_KERNEL_LINE, Phase.TF_A)
_CONSOLE = re.compile(r"console=tty[A-Z]\w*,(\d{4,7})")
_QUIET = re.compile(r"(?:^| )(?:quiet|loglevel=[0-4])(?: |$)")
_STAMP = re.compile(rb"\[ *\d+\.\d{6}\]")
_BITS = 10
"""Of a byte on the line, with start and stop."""


def answers_of(
    folder: Path, result: Result, answers: list[Answer], command_line: str = ""
) -> Iterator[Answer]:
    """Answers about a boot time, with its median boot's five longest parts as causes, what the slowest boot
    waited for beside that one, and notes.
    """
    cycles = _cycles(folder, result)
    median = cycles[len(cycles) // 2] if cycles else None
    grown = _tree(folder, median) if median else None
    slowest = list(_slowest(folder, cycles, grown)) if grown and median else []
    slowest += _spoken(folder, median, command_line)
    for answer in answers:
        spans = [(begin, end) for name, begin, end, _, _ in SPANS if name == answer.metric]
        whole = spans == [SPANS[0][1:3]]
        if median and spans and spans[0][0] is Phase.STARTING_KERNEL:
            spans[0] = (next((p for p in _STARTS if p in median[2]), spans[0][0]), spans[0][1])
        parts = grown.longest(*spans[0]) if grown and spans else []
        causes = (
            Finding("boot", str(part), proof=_proof(part)) for part in parts if part.seconds >= _LEAST_S
        )
        notes = grown.notes if grown and whole else ()
        first = slowest if whole else ()
        yield msgspec.structs.replace(
            answer, causes=(*answer.causes, *first, *causes), notes=notes, looked=bool(grown)
        )


def _units(text: str) -> list[tuple[str, float]]:
    try:
        return systemd_analyze.units(text)
    except RefusedOutput:
        return []


def _proof(part: tree.Part) -> str:
    if part.name.startswith(_INITCALL):
        name = part.name.removeprefix(_INITCALL)
        return f"evmperf ab BOARD.yaml -k boot_time --b args:initcall_blacklist={name}"
    order = [*map(str, Phase)]
    return next(how for end, how in _PROOFS if order.index(part.phase) < order.index(end))


_Cycle = tuple[float, int, dict[Phase, BootMark]]
"""Seconds of a boot, its number in the case (from 1), and its marks."""


def _cycles(folder: Path, result: Result) -> list[_Cycle]:
    """The boots of a case that reached their prompt, the fastest first."""
    ended_ns = result.started_ns + result.duration_s * 1e9
    boots = [r for r in spool.read_records(folder) if isinstance(r, BootRecord)]
    inside = [boot for boot in boots if result.started_ns <= boot.started_ns <= ended_ns]
    cycles = []
    for number, boot in enumerate(inside, 1):
        marks = {Phase(mark.phase): mark for mark in boot.marks}
        start = next((marks[phase] for phase in _STARTS if phase in marks), None)
        if boot.failure is None and start and Phase.PROMPT in marks:
            cycles.append(((marks[Phase.PROMPT].mono_ns - start.mono_ns) / 1e9, number, marks))
    return sorted(cycles, key=lambda cycle: cycle[:2])


def _slowest(folder: Path, cycles: list[_Cycle], usual: tree.Tree) -> Iterator[Finding]:
    """Why the slowest boot of a series took longer than the one in the middle."""
    mean = sum(seconds for seconds, _, _ in cycles) / len(cycles)
    seconds, number, _ = cycles[-1]
    if seconds < _SLOW * mean:
        return
    grown = _tree(folder, cycles[-1], units=False)
    more = grown.beyond(usual)[:1] if grown else []
    waited = (
        f"{more[0].seconds:.1f} s more in {more[0].phase}: {more[0].name}" if more else "no part tells why"
    )
    evidence = (
        f"the max is {seconds / mean:.1f} times the mean: cycle {number} took {seconds:.1f} s, {waited}"
    )
    others = [
        f"{note} in cycle {number}" for note in (grown.notes[:1] if grown else ()) if note not in usual.notes
    ]
    yield Finding("slowest boot", "; ".join([evidence, *others]))


def _spoken(folder: Path, cycle: _Cycle | None, command_line: str) -> Iterator[Finding]:
    """What the kernel's messages take of a serial line, where nothing keeps them from it."""
    speed = _CONSOLE.search(command_line)
    records = _records(folder, cycle) if cycle and speed and not _QUIET.search(command_line) else []
    if not (records and cycle and speed):
        return
    starts = [cycle[2][phase].mono_ns for phase in _STARTS if phase in cycle[2]]
    output = b"".join(r.data for r in records if r.kind == "<" and starts[0] <= r.mono_ns)
    size = sum(len(line) for line in output.split(b"\n") if _STAMP.match(line))
    seconds = size * _BITS / int(speed[1])
    yield Finding(
        "quiet",
        f"the kernel's arguments have no `quiet`: its messages take {seconds:.1f} s of the serial line "
        f"({size / 1000:.1f} kB at {speed[1]} baud)",
        proof="evmperf ab BOARD.yaml -k boot_time --b args:quiet",
    )


def _records(folder: Path, cycle: _Cycle) -> list[ConsoleRecord]:
    """The console of a boot; [] where none was recorded."""
    marks = sorted(cycle[2].values(), key=lambda mark: mark.mono_ns)
    if not (folder / CONSOLE_LOG).is_file():
        return []
    try:
        for records in review.boots(record.read(folder / CONSOLE_LOG)):
            if records[0].mono_ns <= marks[-1].mono_ns <= records[-1].mono_ns:
                return list(records)
    except LabError:
        pass
    return []


def _tree(folder: Path, cycle: _Cycle, *, units: bool = True) -> tree.Tree | None:
    """The tree of a boot; what the board was asked at the end (`units`) is of its last one."""
    records = _records(folder, cycle)
    if not records:
        return None
    timed = _units(_document(folder, "systemd")) if units else []
    return tree.grow(records, cycle[2], timed, _document(folder, "dmesg") if units else "")


def _document(folder: Path, name: str) -> str:
    """What the board was asked at the end of the run; "" where it was not."""
    file = folder / "facts" / name
    return file.read_text("utf-8", "replace") if file.is_file() else ""
