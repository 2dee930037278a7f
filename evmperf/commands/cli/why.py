"""`evmperf why`: the figures of a run explained."""

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from evmperf.benchmarks.tools import perf
from evmperf.commands.app import why
from evmperf.commands.cli.arguments import RESULTS, RUN, argument, command, duration, tell
from evmperf.commands.cli.terminal import width
from evmperf.explain.why import Explained
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import run_folder
from evmperf.measure.state.finding import Finding
from evmperf.model.errors import LabError, UsageError
from evmperf.model.outlets import line
from evmperf.model.replies import WantedSession
from evmperf.model.results import Result
from evmperf.model.units import Unit
from evmperf.publish.pages import look
from evmperf.publish.report.columns import Column, table

_SYMBOLS = 10
"""Symbols that are shown."""


@command(
    "why",
    RUN,
    RESULTS,
    argument("case", nargs="?", default="", help="a benchmark, or BENCHMARK CASE"),
    argument("--against", default="", metavar="RUN", help="a good run, or guide:FILE"),
    argument(
        "--profile",
        action="store_true",
        help="measure the case once more with perf on the board, and show the symbols that took the time",
    ),
    argument(
        "--prove",
        type=duration,
        default=0.0,
        metavar="TIME",
        help="set the differences to --against RUN back on the board for at most so long (10m), and measure",
    ),
    argument("--lg-env", dest="board", default="", metavar="BOARD.yaml", help="(default: the run's)"),
)
def _why(options: argparse.Namespace) -> None:
    """Explains why figures are worse than the published ones or those of another run: causes read on the
    board around the case, each with its evidence, its largest effect and its proof. Without a case, it
    explains all figures that are more than 5 % worse. With --profile and a run by --against that was
    profiled, too, the table has the symbols of both.
    """
    folder = run_folder(options.run, options.results)
    against = options.against
    if options.prove and not (options.case and against):
        raise UsageError(
            "--prove needs a case and --against RUN: evmperf why RUN CASE --against GOOD --prove 10m"
        )
    if against and not against.startswith(why.GUIDE_FILE):
        against = str(run_folder(against, options.results))
    if options.profile:
        _profile(options, folder, Path(against) if against else None)
        return
    explained = why.explain(folder, options.case, against)
    print(look.render("commands/cli/why.txt.j2", explained=explained), end="")
    if options.prove:
        _prove(options, folder, explained)


def _prove(options: argparse.Namespace, folder: Path, explained: Explained) -> None:
    """Prove the figure that lost most; raises UsageError where none is worse."""
    worse = [answer for answer in explained.answers if answer.is_worse and answer.theirs]
    if not worse:
        raise UsageError(f"no figure of {options.case!r} is worse than in {explained.against}")
    # A load scatters too much to wait for.
    answer = max(worse, key=lambda one: (one.unit != Unit.PERCENT, one.times))
    result = next(
        r for r in spool.results_in(folder) if (r.benchmark, r.case) == (answer.benchmark, answer.case)
    )
    beside = [one for one in answer.causes if one.back and one.rule == "beside"]
    if beside and not _allowed(beside):
        causes = tuple(replace(one, back=()) if one in beside else one for one in answer.causes)
        answer = structs.replace(answer, causes=causes)
    from evmperf.commands.app import again  # noqa: PLC0415  # numpy is slow to import

    trials = options.results / f"prove-{spool.new_run_id(explained.board)}"
    proved = again.prove(trials, _board(options, folder), result, answer, budget_s=options.prove, tell=tell)
    print(line(f"{answer.benchmark} {answer.case} {answer.metric}: {proved.sentence}"))
    if proved.unset:
        print(line(f"no command sets these back: {', '.join(proved.unset)}"))


def _allowed(beside: Iterable[Finding]) -> bool:
    """Whether a person lets processes be started on the board and stopped; nobody there does not."""
    for subject in dict.fromkeys(one.subject for one in beside):
        print(line(f"--prove starts again and stops: {subject}"))
    try:
        return input("Start and stop them? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _board(options: argparse.Namespace, folder: Path) -> str:
    """The board file that was named, or the run's; raises UsageError without one."""
    if board := options.board or spool.read_run(folder).facts.board_file:
        return str(board)
    raise UsageError(f"{folder.name} does not say what its board file was: name one with --lg-env")


def _profile(options: argparse.Namespace, folder: Path, against: Path | None) -> None:
    """Measure the first case of a run with these words again, with the run's variation and perf on the
    board, beside the profile of a good run. Raises UsageError, LabError where perf did not record.
    """
    run, board = spool.read_run(folder), _board(options, folder)
    words = options.case
    result = next((r for r in spool.results_in(folder) if words in f"{r.benchmark} {r.case}"), None)
    if not words or result is None:
        raise UsageError(f"{folder.name} has no case {words!r}: name the one to profile as BENCHMARK CASE")
    good = _recorded(against, result) if against else None
    vary = tuple(run.facts.variation)
    session = WantedSession(board=board, perf=True, run_kind="profile", vary=vary)
    from evmperf.commands.app import again  # noqa: PLC0415  # numpy is slow to import

    made, _ = again.measure(options.results, result, session)
    here = _recorded(made, result)
    if here is None:
        results = spool.read_results(made)
        said = [flaw.message for result in results for flaw in result.failures]
        said += [result.conditions["perf"] for result in results if "perf" in result.conditions]
        raise LabError(f"{said[0] if said else 'no profile: perf did not run on the board'}; see {made}")
    columns = [Column("symbol"), Column("here", right=True), Column("good run", right=True)]
    rows = [
        [name, *(f"{side.share(name):.1%}" for side in (here, good) if side)]
        for name, _ in here.symbols.most_common(_SYMBOLS)
    ]
    print(table(columns[: 3 if good else 2], rows, width()))
    for where, one in (("here", here), ("in the good run", good)):
        if one:
            clock = f"; {one.per_cycle:.2f} instructions a cycle" if one.per_cycle else ""
            idle = one.idle / max(one.idle + one.symbols.total(), 1)
            print(
                f"{where}: {one.symbols.total()} samples (parts within {one.uncertainty:.1%}), and CPUs idle "
                f"{idle:.0%} of the time{clock}"
            )
    if options.against and not good:
        print(f"{options.against} has no profile of this case: make one by evmperf why with --profile")
    case, stacks = f"{result.benchmark} {result.case}", made / perf.FOLDED
    print(line(f"{case} measured into {made}; stacks for flame graphs: {stacks}"))


def _recorded(folder: Path, same: Result) -> perf.PerfProfile | None:
    """The profile of a case in a run: of its tools together, in one file of stacks; None without one."""
    raw = [
        folder / name
        for result in spool.results_in(folder)
        if (result.benchmark, result.case) == (same.benchmark, same.case)
        for name in dict.fromkeys(result.raw)
    ]
    stacks = "".join(file.read_text() for file in raw if file.name.endswith(perf.FOLDED))
    if not stacks:
        return None
    counts = "".join(file.read_text() for file in raw if file.name.endswith(perf.COUNTS))
    (folder / perf.FOLDED).write_text(perf.flames(stacks), encoding="utf-8")
    return perf.parse(stacks, counts)
