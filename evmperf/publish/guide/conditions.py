"""What the figures of a guide were measured under: a JSON file beside its text, read back with it.

It has of each board the runs and the records of its cases without their figures; `guide` is the SHA-256 of
the text that it belongs to. Names of hosts, addresses and serial numbers are replaced.
"""

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from evmperf.measure.runs.hiding import Hiding
from evmperf.model import limits
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key
from evmperf.model.results import Result
from evmperf.model.run import Run

_FORMAT = "evmperf-guide/1"
_SHOWN = (
    ("kernel", "kernel"), ("uboot", "U-Boot"), ("image", "image"), ("governor", "governor"),
    ("frequency_khz", "CPU clock in kHz"), ("memory_kib", "memory in KiB"), ("model", "model"),
)  # fmt: skip
"""Facts of a run that the page shows; the file has all."""
_KEPT = ("version", "profile", "params", "tools", "state")
_HIDDEN = ("tools", "conditions", "state")
_MODES = ("queue.scheduler", "net.speed", "mmc.ios.timing_spec", "mmc.ios.clock", "mmc.ios.bus_width")


class MeasuredTable(msgspec.Struct, frozen=True):
    """A run (`Run.from_dict`), and the records of the guide's cases from it, without their figures."""

    run: dict[str, object]
    cases: tuple[Result, ...] = ()


class Conditions(msgspec.Struct, frozen=True):
    """The file's content: of each board the runs that its figures are from, the oldest first."""

    format: str
    guide: str
    boards: Mapping[str, tuple[MeasuredTable, ...]]

    def facts(self, board: str) -> dict[str, object]:
        """The facts on which all runs of a board agree."""
        of_runs = [Run.from_dict(one.run).facts.to_dict() for one in self.boards.get(board, ())]
        first = of_runs[0] if of_runs else {}
        return {name: fact for name, fact in first.items() if all(o.get(name) == fact for o in of_runs)}

    def merged(self, board: str, results: Iterable[Result]) -> Iterator[Result]:
        """Results of the guide's cells, with what is known of their cases."""
        cases = {(r.benchmark, r.case): r for one in self.boards.get(board, ()) for r in one.cases}
        for result in results:
            measured = cases.get((result.benchmark, result.case), result)
            kept = {name: getattr(measured, name) for name in _KEPT}
            both = {**measured.conditions, **result.conditions}
            yield replace(result, conditions=both, **kept)

    def lines(self, benchmark: str, board: str) -> Iterator[tuple[str, str]]:
        """What a page says of the conditions of a table: names and values."""
        for one in self.boards.get(board, ()):
            cases = [case for case in one.cases if case.benchmark == benchmark]
            if not cases:
                continue
            run = Run.from_dict(one.run)
            facts = run.facts.to_dict()
            states = [case.state for case in cases if case.state]
            yield "run", f"{run.id}, profile {run.profile}, {run.os} {run.release}"
            yield from ((name, str(facts[fact])) for fact, name in _SHOWN if fact in facts)
            tools = dict.fromkeys(f"{n} {v}".strip() for case in cases for n, v in case.tools.items())
            yield from (("tool", tool) for tool in tools)
            for name in _MODES:
                if values := dict.fromkeys(str(s.shown[name]) for s in states if name in s.shown):
                    yield name, ", ".join(values)
            for bus in dict.fromkeys(state.bus for state in states if state.bus):
                shares = [share for state in states if state.bus == bus for share in state.shares.values()]
                yield "share of the limit", f"{min(shares):.0%} to {max(shares):.0%} of {bus}"


def beside(guide: Path) -> Path:
    """Where the conditions of a guide are."""
    return guide.with_name(f"{guide.name}.json")


def write(guide: Path, figures: Mapping[str, Mapping[Key, Figure]], runs: Sequence[Run]) -> None:
    """Write the conditions of measured figures beside a guide on the disk, if any; raises OSError."""
    boards = {}
    for board, of_board in figures.items():
        mine = sorted((run for run in runs if run.board == board), key=lambda run: run.started_ns)
        if tables := tuple(_measured(of_board, mine)):
            boards[board] = tables
    if boards:
        data = msgspec.json.encode(Conditions(_FORMAT, _digest(guide.read_bytes()), boards))
        beside(guide).write_bytes(msgspec.json.format(data, indent=1) + b"\n")


def _measured(figures: Mapping[Key, Figure], runs: Sequence[Run]) -> Iterator[MeasuredTable]:
    """Each run with its cases: they began after it, and before the next."""
    hiding = Hiding(name for run in runs for name in (run.lab, run.place))
    results = {figure.key[:2]: figure.result for figure in figures.values() if not figure.published}.values()
    for run, following in itertools.zip_longest(runs, runs[1:]):
        end = following.started_ns if following else math.inf
        if mine := [result for result in results if run.started_ns <= result.started_ns < end]:
            replaced = {"lab": "", "place": "", "addresses": {}, "facts": hiding.value(run.facts.to_dict())}
            bare = (replace(result, samples=(), failures=(), raw=(), published=()) for result in mine)
            hidden = (
                msgspec.to_builtins(result)
                | {name: hiding.value(msgspec.to_builtins(getattr(result, name))) for name in _HIDDEN}
                for result in bare
            )
            yield MeasuredTable(run.to_dict() | replaced, msgspec.convert([*hidden], tuple[Result, ...]))


def read(guide: Path, text: str) -> Conditions | None:
    """The conditions beside a guide, None without any; raises UsageError for those of another text."""
    file = beside(guide)
    if not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            data = opened.read(limits.CASE_BYTES + 1)
        if len(data) > limits.CASE_BYTES:
            raise UsageError(f"{file}: is larger than {limits.mib(limits.CASE_BYTES)}: not read")
        conditions = msgspec.json.decode(data, type=Conditions)
    except (OSError, msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: is not a file of a guide's conditions: {error}") from None
    if conditions.format != _FORMAT:
        raise UsageError(f"{file}: is of format {conditions.format[:40]!r}: update evmperf")
    if conditions.guide != _digest(text.encode()):
        raise UsageError(f"{file}: does not fit the text of {guide}: write the guide again")
    return conditions


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
