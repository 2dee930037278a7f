"""One case of a run measured once more, in a session of its own; and where its time went."""

from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.tools import perf
from evmperf.judge.rounds import LOG, Sessions
from evmperf.measure.runs import spool
from evmperf.model.errors import LabError, UsageError
from evmperf.model.replies import WantedSession
from evmperf.model.results import Result

_SYMBOLS = 10
"""Symbols that are shown."""


@dataclass(frozen=True)
class Profiled:
    """Where the time of a case went: the folder of the run, its case, its file of folded stacks, and symbols
    with their parts of the busy time, here and in the good run (None without a profile of it).
    """

    folder: Path
    case: str
    folded: Path
    here: perf.PerfProfile
    there: perf.PerfProfile | None
    symbols: tuple[tuple[str, float, float | None], ...]


def measure(results: Path, result: Result, session: WantedSession) -> tuple[Path, int]:
    """Measure one case as it was measured; the new run's folder, and the session's exit status. Raises
    UsageError for a case that cannot be measured here, LabError where nothing was measured.
    """
    benchmarks = catalogue.benchmarks()
    near = [benchmark for name, benchmark in benchmarks.items() if result.benchmark in name]  # as -k has it
    selected = {b.name: [case.label for case in b.cases(result.profile)] for b in near}
    if result.case not in selected.get(result.benchmark, ()):
        raise UsageError(f"{result.benchmark} has no case {result.case!r} here")
    mine = f"{result.benchmark}/{result.case}"
    leave_out = {f"{name}/{case}" for name, cases in selected.items() for case in cases} - {mine}
    results.mkdir(parents=True, exist_ok=True)
    asked = structs.replace(
        session, select=result.benchmark, profile=result.profile, leave_out=tuple(sorted(leave_out))
    )
    done = Sessions(results).measure(asked)
    if not done.run:
        raise LabError(f"nothing was measured (exit status {done.status}): see {results / LOG}")
    return results / done.run, done.status


def profile(folder: Path, case: str, board: str, against: Path | None, results: Path) -> Profiled:
    """Measure the first case of a run whose name has `case` again, with the run's variation and perf on the
    board, and compare with the profile of a good run. Raises UsageError, LabError where perf did not record.
    """
    result = next((r for r in spool.results_in(folder) if case in f"{r.benchmark} {r.case}"), None)
    if not case or result is None:
        raise UsageError(f"{folder.name} has no case {case!r}: name the one to profile as BENCHMARK CASE")
    recorded_then = _recorded(against, result) if against else None
    vary = tuple(spool.read_run(folder).facts.variation)
    made, _ = measure(results, result, WantedSession(board=board, perf=True, run_kind="profile", vary=vary))
    recorded = _recorded(made, result)
    if recorded is None:
        flaws = [f.message for r in spool.results_in(made) for f in r.failures]
        raise LabError(f"perf recorded nothing: {flaws[0] if flaws else f'see {made}'}")
    folded, here = recorded
    good = recorded_then[1] if recorded_then else None
    names = [name for name, _ in here.symbols.most_common(_SYMBOLS)]
    symbols = tuple((name, here.share(name), good.share(name) if good else None) for name in names)
    return Profiled(made, f"{result.benchmark} {result.case}", folded, here, good, symbols)


def _recorded(folder: Path, same: Result) -> tuple[Path, perf.PerfProfile] | None:
    """The profile of a case in a run: of its tools together, in one file of stacks; None without one."""
    raw = [
        folder / name
        for result in spool.results_in(folder)
        if (result.benchmark, result.case) == (same.benchmark, same.case)
        for name in dict.fromkeys(result.raw)
    ]
    stacks = [file.read_text() for file in raw if file.name.endswith(perf.FOLDED)]
    if not stacks:
        return None
    counts = "".join(file.read_text() for file in raw if file.name.endswith(perf.COUNTS))
    folded = folder / perf.FOLDED
    folded.write_text(perf.flames("".join(stacks)), encoding="utf-8")
    return folded, perf.parse("".join(stacks), counts)
