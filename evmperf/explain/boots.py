"""What took longest in a boot, for who asks why its time is what it is."""

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from evmperf.benchmarks.families.boot import END, SPANS
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
from evmperf.model.stats import outliers

_INITCALL = "initcall "
_PROOFS = (
    (Phase.STARTING_KERNEL, "CONFIG_BOOTSTAGE_REPORT=y in U-Boot's configuration"),
    (Phase.INIT_STARTED, f"pytest --lg-env BOARD.yaml -k boot_time --vary 'args:{tree.TIMED}'"),
    (Phase.PROMPT, "systemd-analyze blame, on the board"),
)
"""What tells more of a part before a phase."""
_LEAST_S = 0.001
_SLOW = 1.3
"""How many times longer than the mean a boot takes that needs an explanation, where no table marks it."""
_SHOWN = 5
"""Parts, and slow boots, that are named."""
_ALIKE_S = 0.03
"""By how much two clocks may differ on one part."""
_STARTS = (Phase.STARTING_KERNEL, Phase.EFI_STUB, Phase.FIRST_KERNEL_LINE, Phase.TF_A)
_CONSOLE = re.compile(r"console=tty[A-Z]\w*,(\d{4,7})")
_QUIET = re.compile(r"(?:^| )(?:quiet|loglevel=[0-4])(?: |$)")
_SYSTEMD = re.compile(r"(?m)^\[ *(\d{1,6}\.\d{6})\] systemd\[1\]: systemd \S+ running in")
_STAMP = re.compile(rb"\[ *\d+\.\d{6}\]")
_BITS = 10
"""Of a byte on the line, with start and stop."""

_Cycle = tuple[float, int, dict[Phase, BootMark]]
"""Seconds of a boot, its number in the case (from 1), and its marks."""
Times = dict[tuple[str, str], list[float]]
"""Seconds in each boot, by the clock and the name of a part."""


def answers_of(
    folder: Path,
    result: Result,
    answers: list[Answer],
    command_line: str = "",
    good: tuple[Path, Result] | None = None,
) -> Iterator[Answer]:
    """Answers about a boot time, with notes, and as causes what slow boots waited for beside the median one,
    and its parts: of a run that is held against a `good` one (its folder and result) those that took longer
    than there, by how much, else the longest.
    """
    cycles, grown = _median(folder, result)
    usual = _median(*good)[1] if good else None
    median = cycles[len(cycles) // 2] if cycles else None
    slowest = list(_slowest(folder, cycles, grown)) if grown and median else []
    slowest += _spoken(folder, median, command_line)
    for answer in answers:
        metric, whole = answer.metric, answer.metric == SPANS[0][0]
        metric = SPANS[0][0] if metric.startswith(END) else metric
        spans = [(begin, end) for name, begin, end, _, _ in SPANS if name == metric]
        if median and spans and spans[0][0] is Phase.STARTING_KERNEL:
            spans[0] = (next((p for p in _STARTS if p in median[2]), spans[0][0]), spans[0][1])
        if good and not answer.is_worse:
            yield answer
            continue
        causes = list(_parts(grown, usual, spans[0], answer.release)) if grown and spans else []
        notes = (_phases(cycles), *grown.notes) if grown and whole else ()
        first = slowest if whole else ()
        yield msgspec.structs.replace(
            answer, causes=(*answer.causes, *first, *causes), notes=notes, looked=bool(grown)
        )


def _parts(
    grown: tree.Tree, usual: tree.Tree | None, span: tuple[Phase, Phase], name: str
) -> Iterator[Finding]:
    """The longest parts between two marks, or those that took longer than in the run `name`."""
    if usual is None:
        for part in grown.longest(*span, _SHOWN):
            if part.seconds >= _LEAST_S:
                yield Finding("boot", str(part), proof=_proof(part))
        return
    inside = [*itertools.dropwhile(lambda phase: phase != span[0], grown.phases)]
    inside = [*itertools.takewhile(lambda phase: phase != span[1], inside)]
    seen: list[tree.Part] = []
    for part in grown.beyond(usual):
        # What systemd and the console both time is one part.
        again = any(
            one.phase == part.phase and abs(one.seconds - part.seconds) < _ALIKE_S and one.clock != part.clock
            for one in seen
        )
        if part.phase in inside and not again and len(seen) < _SHOWN:
            seen.append(part)
            more = f"{part.seconds:.3f} s more than in {name} in {part.phase}: {part.what} ({part.clock})"
            yield Finding("boot", more, proof=_proof(part))


def _median(folder: Path, result: Result) -> tuple[list[_Cycle], tree.Tree | None]:
    """The boots of a case, the fastest first, and the tree of the one in the middle."""
    cycles = _cycles(folder, result)
    return cycles, _tree(folder, cycles[len(cycles) // 2]) if cycles else None


def _phases(cycles: list[_Cycle]) -> str:
    """Seconds of each phase in the median boot and in the slowest one."""
    (_, usual, marks), (_, slow, late) = cycles[len(cycles) // 2], cycles[-1]
    both = [{a.phase: (b.mono_ns - a.mono_ns) / 1e9 for a, b in _pairs(some)} for some in (marks, late)]
    words = [f"{phase} {s:.3f} ({both[1][phase]:.3f})" for phase, s in both[0].items() if phase in both[1]]
    which = f"cycle {usual}, the median (in cycle {slow}, the slowest)"
    return f"seconds after each mark in {which}: {', '.join(words)}"


def _pairs(marks: dict[Phase, BootMark]) -> Iterator[tuple[BootMark, BootMark]]:
    return itertools.pairwise(sorted(marks.values(), key=lambda mark: mark.mono_ns))


def _units(text: str) -> list[tuple[str, float]]:
    with contextlib.suppress(RefusedOutput):
        return systemd_analyze.units(text)
    return []


def _chain(text: str) -> list[str]:
    with contextlib.suppress(RefusedOutput):
        return systemd_analyze.chain(text)
    return []


def _proof(part: tree.Part) -> str:
    if part.name.startswith(_INITCALL):
        name = part.name.removeprefix(_INITCALL).partition(" [")[0]
        return f"evmperf ab BOARD.yaml -k boot_time --b args:initcall_blacklist={name}"
    order = [*map(str, Phase)]
    return next(how for end, how in _PROOFS if order.index(part.phase) < order.index(end))


def _cycles(folder: Path, result: Result) -> list[_Cycle]:
    """The boots of a case that reached their prompt, the fastest first."""
    ended_ns = result.started_ns + result.duration_s * 1e9
    boots = [r for r in spool.read_records(folder) if isinstance(r, BootRecord)]
    inside = [boot for boot in boots if result.started_ns <= boot.started_ns <= ended_ns]
    cycles = []
    for number, boot in enumerate(inside, 1):
        marks = {Phase(mark.phase): mark for mark in boot.marks if mark.phase in {*Phase}}
        start = next((marks[phase] for phase in _STARTS if phase in marks), None)
        if boot.failure is None and start and Phase.PROMPT in marks:
            cycles.append(((marks[Phase.PROMPT].mono_ns - start.mono_ns) / 1e9, number, marks))
    return sorted(cycles, key=lambda cycle: cycle[:2])


def _slowest(folder: Path, cycles: list[_Cycle], usual: tree.Tree) -> Iterator[Finding]:
    """Why the slowest boot of a series, and each other outlier, took longer than the one in the middle."""
    times = [seconds for seconds, _, _ in cycles]
    mean, middle = sum(times) / len(times), times[len(times) // 2]
    marked = outliers(times)
    slow = [
        cycle
        for cycle, is_marked in zip(cycles, marked, strict=True)
        if (is_marked and cycle[0] > middle) or (cycle is cycles[-1] and cycle[0] >= _SLOW * mean)
    ]
    for cycle in slow[: -_SHOWN - 1 : -1]:
        seconds, number, _ = cycle
        grown = _tree(folder, cycle, units=False)
        more = grown.beyond(usual)[:1] if grown else []
        waited = (
            f"{more[0].seconds:.1f} s more in {more[0].phase}: {more[0].what}"
            if more
            else "no part tells why"
        )
        which = f"the max is {seconds / mean:.1f} times the mean" if cycle is cycles[-1] else "an outlier"
        evidence = f"{which}: cycle {number} took {seconds:.1f} s, {waited}"
        others = [
            f"{note} in cycle {number}"
            for note in (grown.notes[:1] if grown else ())
            if note not in usual.notes
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
    last_ns = max(mark.mono_ns for mark in cycle[2].values())
    return next((some for some in _consoles(folder) if some[0].mono_ns <= last_ns <= some[-1].mono_ns), [])


def _consoles(folder: Path) -> Iterator[list[ConsoleRecord]]:
    """What the board said in each boot of a run, up to a broken line."""
    if (folder / CONSOLE_LOG).is_file():
        with contextlib.suppress(LabError):
            yield from review.boots(record.read(folder / CONSOLE_LOG))


def times(folder: Path, result: Result) -> Times:
    """Seconds that each part took in the boots of a case of which there is a console."""
    found: Times = {}
    ended = {max(mark.mono_ns for mark in marks.values()): marks for _, _, marks in _cycles(folder, result)}
    for records in _consoles(folder):
        began_ns, last_ns = records[0].mono_ns, records[-1].mono_ns
        if marks := next((m for at_ns, m in ended.items() if began_ns <= at_ns <= last_ns), None):
            for part, seconds in tree.timed(records, marks).items():
                found.setdefault(part, []).append(seconds)
    return found


def _tree(folder: Path, cycle: _Cycle, *, units: bool = True) -> tree.Tree | None:
    """The tree of a boot; what the board was asked at the end (`units`) is of its last one."""
    records = _records(folder, cycle)
    if not records:
        return None
    if not units:
        return tree.grow(records, cycle[2])
    timed, chain = _units(document(folder, "systemd")), _chain(document(folder, "systemd-chain"))
    log, stashed = document(folder, "dmesg"), _stashed(document(folder, "device_tree"))
    grown = tree.grow(records, cycle[2], timed, log, chain, stashed=stashed)
    said = [*_of_systemd(document(folder, "systemd-time"), log)]
    if not timed:
        said.append("units are not timed: the board has no systemd-analyze, or it did not answer")
    return replace(grown, notes=(*grown.notes, *said))


def _of_systemd(text: str, log: str) -> Iterator[str]:
    """When systemd started in the run's last boot, by itself and by the kernel's stamp of its first line."""
    said = _SYSTEMD.search(log)
    with contextlib.suppress(RefusedOutput):
        parts = systemd_analyze.parts(text)
        own_s = parts["kernel"] + parts.get("initrd", 0.0)
        if said:
            first_s = float(said[1])
            yield (
                f"systemd's start: {own_s:.3f} s by systemd (cut to ms), {first_s:.3f} s by the kernel's "
                f"stamp of its first message: {abs(first_s - own_s):.3f} s apart"
            )


def _stashed(digits: str) -> list[tuple[str, float]]:
    """Stages that U-Boot left in the device tree (common/bootstage.c), with their seconds since the one
    before; [] without any. `mark` is in microseconds since reset.
    """
    import fdt  # noqa: PLC0415  # for boards with this only

    try:
        root = fdt.parse_dtb(bytes.fromhex(digits))
        nodes = root.get_node("/bootstage").nodes if root.exist_node("/bootstage") else []
        marks = sorted(
            (n.get_property("mark").value, str(n.get_property("name").value))
            for n in nodes
            if n.exist_property("mark")
        )
        before = [0, *(at_us for at_us, _ in marks)]
        return [(name, (at_us - since) / 1e6) for (at_us, name), since in zip(marks, before, strict=False)]
    except Exception:  # noqa: BLE001  # the library raises whatever it stumbles over
        return []


def document(folder: Path, name: str) -> str:
    """What the board was asked at the end of the run; "" where it was not."""
    file = folder / "facts" / name
    return file.read_text("utf-8", "replace") if file.is_file() else ""
