"""References of boots: the range of seconds that each phase, initcall and stage of U-Boot takes on one board,
and what of another run's boots is outside.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import msgspec

from evmperf.boards.console import tree
from evmperf.explain import boots
from evmperf.measure.runs import spool
from evmperf.model import limits
from evmperf.model.errors import UsageError, one_line
from evmperf.model.exits import ExitStatus
from evmperf.model.run import Run
from evmperf.model.units import counted

REFERENCE_BOOTS, HELD_BOOTS = 10, 3
"""Boots of one system from which on a reference has ranges, and from which on a run is held against one."""
_KNOWN_S, _LEAST_S = 0.005, 0.01
"""Parts of a boot that a reference has, and that are judged, last so long at least: a timer's tick within a
shorter one would be more than 5 % of it.
"""
_SHARE, _SPREAD = 0.01, 0.25
"""A part is outside its range by this share of its median and of the range's width at least: chance alone
puts the shortest of three boots above the longest of twenty once in 1771 times, and a boot has some hundred
parts.
"""
_TICK_S = 0.01
"""A kernel times initcalls in whole ticks, of 10 ms at most, before its clock source starts."""
_TELLING = 0.05
"""It is said how many parts would show a change by this share."""
_SHOWN = 10
_WIDESPREAD = 0.25
"""Share of slower parts from which on it is not a part that is slow."""

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds that a part took by a clock in so many boots; an initcall has its module in brackets."""

    part: str
    clock: str
    low_s: _Seconds
    median_s: _Seconds
    high_s: _Seconds
    boots: Annotated[int, msgspec.Meta(ge=1)]

    @property
    def margin_s(self) -> float:
        """Seconds beyond the range that may be chance."""
        tick_s = _tick_s(self.low_s, self.median_s, self.high_s)
        return max(_SHARE * self.median_s, _SPREAD * (self.high_s - self.low_s), tick_s)

    @property
    def is_telling(self) -> bool:
        """Whether the usual duration and 5 % is outside."""
        return self.median_s * (1 + _TELLING) > self.high_s + self.margin_s


def _tick_s(*seconds: float) -> float:
    """How coarse the clock of some durations may be: they are whole milliseconds where it ticks."""
    return _TICK_S if all(round(s * 1e6) % 1000 == 0 for s in seconds) else 0.0


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ranges by case, and the board and `conditions` (kernel, arguments, configuration) they hold for."""

    format: Literal["evmperf-reference/1"]
    board: str
    conditions: dict[str, str]
    runs: list[str]
    cases: dict[str, list[Range]]


def write(file: Path, folders: Iterable[Path]) -> None:
    """Write the reference that runs of one board and system are together. Raises UsageError for runs of
    different systems, for less than ten boots, and for a file that cannot be written.
    """
    made: Reference | None = None
    seconds: dict[str, boots.Times] = {}
    for folder in folders:
        ours = _described(folder, spool.read_run(folder))
        if made and (differing := [*_differing(made, ours)]):
            raise UsageError(f"{folder.name}: a reference is of one system: {'; '.join(differing)}")
        made = msgspec.structs.replace(ours, runs=[*(made.runs if made else ()), *ours.runs])
        for case, times in _cases(folder).items():
            for key, values in times.items():
                seconds.setdefault(case, {}).setdefault(key, []).extend(values)
    most = max((len(values) for times in seconds.values() for values in times.values()), default=0)
    if made is None or most < REFERENCE_BOOTS:
        raise UsageError(
            f"a reference needs {REFERENCE_BOOTS} boots of one case, and there are {most}: measure them with "
            f'pytest --lg-env BOARD.yaml -k boot_time --boots 20 --vary "args:{tree.TIMED}"'
        )
    made = msgspec.structs.replace(made, cases={case: [*_ranges(times)] for case, times in seconds.items()})
    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from None


def read(file: Path, board: str) -> Reference:
    """A reference; raises UsageError for a file that is none, is damaged, or is of another board."""
    try:
        with file.open("rb") as opened:
            data = opened.read(limits.RUN_BYTES)
        found = msgspec.json.decode(data, type=Reference)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = f"{one_line(error)}; write one with evmperf export --reference {file} RUN"
        raise UsageError(f"{file}: is no reference of boots: {why}") from None
    for case, ranges in found.cases.items():
        for one in ranges:
            if not one.low_s <= one.median_s <= one.high_s:
                raise UsageError(f"{file}: {case}, {one.part}: low_s, median_s, high_s do not rise")
    if found.board != board:
        raise UsageError(f"{file}: is of {found.board}, and this board is {board}: boards do not compare")
    return found


def held(folder: Path, run: Run, against: Reference) -> tuple[list[str], ExitStatus]:
    """A run's boots beside a reference: what a person reads, and FAILED where a part is slower, UNDECIDED on
    a busy host or where boots are too few, NOTHING without a case that both have, else OK.
    """
    both = {case: times for case, times in _cases(folder).items() if case in against.cases}
    lines = [*_differing(against, _described(folder, run)), *filter(None, [run.facts.busy])]
    if not both:
        return [*lines, "the run has no boots of a case that the reference has"], ExitStatus.NOTHING
    status = ExitStatus.UNDECIDED
    for case, times in both.items():
        most = max(map(len, times.values()))
        if most < HELD_BOOTS:
            lines.append(f"{case}: not judged: {HELD_BOOTS} boots with a console are needed")
            continue
        slower, otherwise, judged = _outside(times, against.cases[case])
        telling = sum(one.is_telling for one in judged)
        lines.append(
            f"{case}: {counted(most, 'boot')}, {counted(len(judged), 'part')}, {len(slower)} slower than the "
            f"reference; 5 % more would show in {telling} of them"
        )
        if len(slower) > max(_WIDESPREAD * len(judged), 1):
            lines.append("  the boot as a whole is slower: look at clocks and load before you look at parts")
        for sentences in (slower, otherwise):
            lines += [f"  {sentence}" for sentence in sentences[:_SHOWN]]
            lines += [f"  ... and {len(sentences) - _SHOWN} more"] * (len(sentences) > _SHOWN)
        if status is not ExitStatus.FAILED:
            status = ExitStatus.FAILED if slower else ExitStatus.OK
    return lines, ExitStatus.UNDECIDED if status is ExitStatus.FAILED and run.facts.busy else status


def _outside(times: boots.Times, ranges: Sequence[Range]) -> tuple[list[str], list[str], list[Range]]:
    """Parts that are slower or new, those that are faster or gone, the largest first, and what was judged."""
    slower: list[tuple[float, str]] = []
    other: list[tuple[float, str]] = []
    judged: list[Range] = []
    for one in ranges:
        values = sorted(times.get((one.clock, one.part), []))
        usual = f"the reference has {one.low_s:.4f} to {one.high_s:.4f} s in {counted(one.boots, 'boot')}"
        if one.boots < REFERENCE_BOOTS:
            continue
        is_timed = any(clock == one.clock for clock, _ in times)
        if not values and is_timed and one.median_s - _tick_s(one.median_s) >= _LEAST_S:
            other.append((one.median_s, f"gone: {one.part}; {usual}"))
        if len(values) < HELD_BOOTS or max(one.median_s, values[-1]) < _LEAST_S:
            continue
        judged.append(one)
        told = f"{one.part} took {values[0]:.4f} to {values[-1]:.4f} s ({one.clock}); {usual}"
        # Of three boots all, of more three quarters.
        quarter = (len(values) - 1) // 4
        if values[quarter] > one.high_s + one.margin_s:
            slower.append((values[quarter] - one.median_s, f"slower: {told}"))
        elif values[-1 - quarter] < one.low_s - one.margin_s:
            other.append((one.median_s - values[quarter], f"faster: {told}"))
    known = {(one.clock, one.part) for one in ranges}
    most = max(map(len, times.values()))
    for (clock, part), new in times.items():
        is_new = (clock, part) not in known and any(clock == timed for timed, _ in known)
        if is_new and len(new) == most and min(new) - _tick_s(*new) >= _LEAST_S:
            slower.append((min(new), f"new: {part} took {min(new):.4f} to {max(new):.4f} s ({clock})"))
    first, then = ([sentence for _, sentence in sorted(some, reverse=True)] for some in (slower, other))
    return first, then, judged


def _ranges(times: boots.Times) -> Iterator[Range]:
    """The parts, the longest first."""
    for (clock, part), values in sorted(times.items(), key=lambda item: -median(item[1])):
        if max(values) >= _KNOWN_S:
            low, middle, high = (round(s, 6) for s in (min(values), median(values), max(values)))
            yield Range(part, clock, low, middle, high, len(values))


def _cases(folder: Path) -> Mapping[str, boots.Times]:
    """What each part took in the boots of each case of a run."""
    cases = {f"{one.benchmark} {one.case}": one for one in spool.results_in(folder) if one.driver == "boot"}
    return {case: times for case, result in cases.items() if (times := boots.times(folder, result))}


def _described(folder: Path, run: Run) -> Reference:
    """A reference without ranges: what durations of a run depend on, as far as it is known."""
    configuration = boots.document(folder, "kernel_config").encode()
    known = {
        "kernel": f"{run.facts.kernel} {run.facts.kernel_version}".strip(),
        "kernel arguments": run.facts.command_line,
        "kernel configuration": hashlib.sha256(configuration).hexdigest()[:12] if configuration else "",
        "U-Boot": run.facts.uboot,
    }
    conditions = {name: text for name, text in known.items() if text}
    return Reference("evmperf-reference/1", run.board, conditions, [run.id], {})


def _differing(one: Reference, other: Reference) -> Iterator[str]:
    if one.board != other.board:
        yield f"board {other.board}, not {one.board}"
    for name, text in one.conditions.items():
        if text != other.conditions.get(name, text):
            yield f"{name} {other.conditions[name]!r}, not {text!r} as in the reference"
