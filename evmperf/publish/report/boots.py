"""What took longest in a boot, for who asks why its time is what it is."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from evmperf.benchmarks.families.boot import SPANS
from evmperf.benchmarks.tools import systemd_analyze
from evmperf.boards.console import record, review, tree
from evmperf.boards.console.marks import Phase
from evmperf.measure.runs import spool
from evmperf.measure.runs.stamps import CONSOLE_LOG
from evmperf.measure.state.answers import Answer, Cause
from evmperf.model.errors import LabError, RefusedOutput
from evmperf.model.records import BootRecord
from evmperf.model.results import Result

_INITCALL = "initcall "
_PROOFS = (
    (Phase.STARTING_KERNEL, "CONFIG_BOOTSTAGE_REPORT=y in U-Boot's configuration"),
    (Phase.INIT_STARTED, "evmperf ab BOARD.yaml -k boot_time --b args:initcall_debug"),
    (Phase.PROMPT, "systemd-analyze blame, on the board"),
)
"""What tells more of a part before a phase."""
_LEAST_S = 0.001


def told(folder: Path, result: Result, answers: list[Answer]) -> Iterator[Answer]:
    """Answers about a boot time, with its median boot's five longest parts as causes, and notes."""
    grown = _tree(folder, result)
    for answer in answers:
        spans = [(begin, end) for name, begin, end, _, _ in SPANS if name == answer.metric]
        parts = grown.longest(*spans[0]) if grown and spans else []
        causes = (Cause("boot", str(part), _proof(part)) for part in parts if part.seconds >= _LEAST_S)
        notes = grown.notes if grown and spans == [SPANS[0][1:3]] else ()
        yield msgspec.structs.replace(
            answer, causes=(*answer.causes, *causes), notes=notes, looked=bool(grown)
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


def _tree(folder: Path, result: Result) -> tree.Tree | None:
    """The tree of the boot in the middle of those of a case; None where no console was recorded."""
    ended_ns = result.started_ns + result.duration_s * 1e9
    found = sorted(
        (marks[-1].mono_ns - marks[0].mono_ns, number, marks)
        for number, boot in enumerate(r for r in spool.read_records(folder) if isinstance(r, BootRecord))
        if result.started_ns <= boot.started_ns <= ended_ns and boot.failure is None
        if (marks := boot.marks) and marks[-1].phase == Phase.PROMPT
    )
    if not found or not (folder / CONSOLE_LOG).is_file():
        return None
    _, _, marks = found[len(found) // 2]
    known = {Phase(mark.phase): mark for mark in marks}
    try:
        for records in review.boots(record.read(folder / CONSOLE_LOG)):
            if records[0].mono_ns <= marks[-1].mono_ns <= records[-1].mono_ns:
                units = _units(_document(folder, "systemd"))
                return tree.grow(records, known, units, _document(folder, "dmesg"))
    except LabError:
        pass
    return None


def _document(folder: Path, name: str) -> str:
    """What the board was asked at the end of the run; "" where it was not."""
    file = folder / "facts" / name
    return file.read_text("utf-8", "replace") if file.is_file() else ""
