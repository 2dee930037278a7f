"""What the figures of a guide were measured under: a JSON file beside its text, read back with it.

`boards` has of each board its `runs` (facts of the newest) and its `cases` (what their records say
beyond the figures, `run` their run's number); `guide` is the SHA-256 of the text that it belongs to.
Names of hosts, addresses and serial numbers are replaced as in a case file.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evmperf.model import limits
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key
from evmperf.model.results import ParamValue, Result
from evmperf.model.run import Run
from evmperf.model.state import State
from evmperf.runs.casefile import Hiding

_FORMAT = "evmperf-guide/1"
_SHOWN = (
    ("kernel", "kernel"), ("uboot", "U-Boot"), ("image", "image"), ("governor", "governor"),
    ("frequency_khz", "CPU clock in kHz"), ("memory_kib", "memory in KiB"), ("model", "model"),
)  # fmt: skip
"""Facts of a run that the page shows; the file has all."""
_MODES = ("queue.scheduler", "net.speed", "mmc.ios.timing_spec", "mmc.ios.clock", "mmc.ios.bus_width")


class CaseConditions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the record of a case says beyond its figures."""

    benchmark: str
    case: str
    run: int
    version: int
    profile: str
    params: Mapping[str, ParamValue] = {}
    tools: Mapping[str, str] = {}
    conditions: Mapping[str, Any] = {}
    state: State | None = None


class RunConditions(msgspec.Struct, frozen=True):
    """What a run says of board and software; times in nanoseconds since the epoch."""

    id: str
    release: str
    os: str
    profile: str
    started_ns: int
    facts: Mapping[str, Any]


class BoardConditions(msgspec.Struct, frozen=True):
    """The measured cases of a board, and their runs, the oldest first."""

    runs: tuple[RunConditions, ...]
    cases: tuple[CaseConditions, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """The facts on which all runs of its cases agree."""
        used = {one.run for one in self.cases}
        first, *others = (run.facts for number, run in enumerate(self.runs) if number in used)
        return {name: fact for name, fact in first.items() if all(o.get(name) == fact for o in others)}


class Conditions(msgspec.Struct, frozen=True):
    """The file's content."""

    format: str
    guide: str
    boards: Mapping[str, BoardConditions]

    def merged(self, board: str, results: Iterable[Result]) -> list[Result]:
        """Results of the guide's cells, with what is known of their cases."""
        known = {(one.benchmark, one.case): one for one in self.boards[board].cases}
        return [_with(result, known.get((result.benchmark, result.case))) for result in results]

    def said(self, benchmark: str, board: str) -> Iterator[tuple[str, str]]:
        """What a page says of the conditions of a table: names and values."""
        there = self.boards[board]
        cases = [one for one in there.cases if one.benchmark == benchmark]
        for number in sorted({one.run for one in cases}):
            run = there.runs[number]
            yield "run", f"{run.id}, profile {run.profile}, {run.os} {run.release}"
            yield from ((name, str(run.facts[fact])) for fact, name in _SHOWN if run.facts.get(fact))
        for tool in dict.fromkeys(f"{n} {v}".strip() for one in cases for n, v in one.tools.items()):
            yield "tool", tool
        states = [one.state for one in cases if one.state]
        for name in _MODES:
            values = dict.fromkeys(str(state.shown[name]) for state in states if name in state.shown)
            if values:
                yield name, ", ".join(values)
        for bus in dict.fromkeys(state.bus for state in states if state.bus):
            shares = [share for state in states if state.bus == bus for share in state.shares.values()]
            yield "share of the limit", f"{min(shares):.0%} to {max(shares):.0%} of {bus}"


def _with(result: Result, known: CaseConditions | None) -> Result:
    if known is None:
        return result
    words = {name: getattr(known, name) for name in ("version", "profile", "params", "tools", "state")}
    return msgspec.structs.replace(result, conditions={**known.conditions, **result.conditions}, **words)


def beside(guide: Path) -> Path:
    """Where the conditions of a guide are."""
    return guide.with_name(f"{guide.name}.json")


def write(guide: Path, figures: Mapping[str, Mapping[Key, Figure]], runs: Sequence[Run]) -> None:
    """Write the conditions of the measured figures beside a guide that is on the disk, nothing where
    none was measured; raises OSError.
    """
    mine = {board: [run for run in runs if run.board == board] for board in figures}
    boards = {b: there for b, known in figures.items() if (there := _of_board(known, mine[b]))}
    if boards:
        found = Conditions(_FORMAT, _digest(guide.read_bytes()), boards)
        beside(guide).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def _of_board(figures: Mapping[Key, Figure], runs: Iterable[Run]) -> BoardConditions | None:
    mine = sorted(runs, key=lambda run: run.started_ns)
    hiding = Hiding(name for run in mine for name in (run.lab, run.place))
    results = {f.key[:2]: f.result for f in figures.values() if not f.published}
    if not results:
        return None
    cases = []
    for result in results.values():
        whose = max((n for n, run in enumerate(mine) if run.started_ns <= result.started_ns), default=0)
        told = msgspec.to_builtins(result)
        words = {name: hiding.value(told.get(name, {})) for name in ("tools", "conditions")}
        state = hiding.value(told["state"]) if result.state else None
        state = msgspec.convert(state, State) if state else None
        cases.append(
            CaseConditions(
                result.benchmark, result.case, whose, result.version, result.profile, result.params,
                **words, state=state,
            )
        )  # fmt: skip
    told_runs = (
        RunConditions(r.id, r.release, r.os, r.profile, r.started_ns, hiding.value(r.facts)) for r in mine
    )
    return BoardConditions(tuple(told_runs), tuple(cases))


def join(guide: Path, text: str, results: MutableMapping[str, list[Result]]) -> tuple[Conditions | None, str]:
    """Add to results by board what is beside their guide; returns that, and why it is not used."""
    try:
        found = read(guide, text)
    except UsageError as error:
        return None, str(error)
    for board in set(results) & set(found.boards if found else ()):
        assert found
        results[board] = found.merged(board, results[board])
    return found, ""


def read(guide: Path, text: str) -> Conditions | None:
    """The conditions beside a guide of this text; None where there are none.

    Raises UsageError for a file that is not of that text, or no such file.
    """
    file = beside(guide)
    if not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            data = opened.read(limits.CASE_BYTES + 1)
        if len(data) > limits.CASE_BYTES:
            raise UsageError(f"{file}: is larger than {limits.mib(limits.CASE_BYTES)}: not read")
        found = msgspec.json.decode(data, type=Conditions)
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: holds no conditions of a guide: {error}") from None
    if found.format != _FORMAT:
        raise UsageError(f"{file}: is of format {found.format[:40]!r}: update evmperf")
    if found.guide != _digest(text.encode()):
        raise UsageError(f"{file}: is of another text than {guide}: write the guide again")
    numbers = {(len(there.runs), one.run) for there in found.boards.values() for one in there.cases}
    if any(not 0 <= number < count for count, number in numbers):
        raise UsageError(f"{file}: names a run that it does not have")
    return found


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
