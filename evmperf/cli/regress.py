"""`evmperf check`, `evmperf compare` and `evmperf accept`."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fnmatch
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evmperf.cli import arguments, confirming, sources
from evmperf.guide import importer
from evmperf.influx.sender import send_if_named
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.verdict import Judgement
from evmperf.published.declared import tables
from evmperf.regress import accepted, against, judge
from evmperf.regress.against import Sides, Wanted
from evmperf.report import differences as report
from evmperf.report import page
from evmperf.report import verdicts as formats
from evmperf.runs import differences, spool
from evmperf.runs import verdicts as records
from evmperf.runs.differences import Difference
from evmperf.runs.history import GUIDE, RunSource, SpoolFolder, StoredRun
from evmperf.runs.spool import read_run

_EPILOG = (
    "Exit status: 0 nothing of what could be told is worse, 1 something worse, 5 nothing "
    "comparable, 6 nothing could be told, or something is suspected."
)


_GRAVEST_FIRST = (
    ExitStatus.USAGE,
    ExitStatus.LAB_BROKEN,
    ExitStatus.INTERRUPTED,
    ExitStatus.FAILED,
    ExitStatus.UNDECIDED,
    ExitStatus.OK,
    ExitStatus.NOTHING,
)


def add_parsers(commands: Any) -> None:
    """Add the three commands."""
    check = commands.add_parser(
        "check",
        description="Judge runs: same, better, worse, or not comparable, metric by metric. The "
        "verdicts go into the run in place of earlier ones, its report is written again, and "
        "they go to InfluxDB if it is configured. The run goes into the lab's store [EVMPERF_HISTORY: "
        "a folder or a URL]. Published figures are left as they are.",
        epilog=f"{_EPILOG} Of several runs the worst counts.",
    )
    arguments.add_run(check, "+")
    check.add_argument(
        "--against",
        required=True,
        metavar="WHAT",
        help="release:11.00, run:ID, last:N (earlier runs of the board), or guide:FILE",
    )
    sources.add_from(check)
    check.add_argument(
        "--calibrate",
        action="store_true",
        help="judge the past nights, each by those before it, and say how many would have raised "
        "an alarm; nothing is kept",
    )
    check.add_argument("--dry-run", action="store_true", help="only say what the verdicts are")
    confirming.add_options(check)
    _add_output(check)
    check.set_defaults(func=_check)

    compare = commands.add_parser("compare", description="Judge run B by run A.", epilog=_EPILOG)
    compare.add_argument("a", metavar="A", nargs="?", help="the run to compare with")
    compare.add_argument("b", metavar="B", nargs="?", help="the run to judge")
    compare.add_argument(
        "--a", dest="side_a", metavar="RUN", nargs="+", default=[], help="runs to compare with"
    )
    compare.add_argument("--b", dest="side_b", metavar="RUN", nargs="+", default=[], help="runs to judge")
    arguments.add_results(compare)
    _add_output(compare)
    compare.set_defaults(func=_compare)

    accept = commands.add_parser(
        "accept",
        description="Mark a change that was meant: from that run on, older figures of the metric "
        "are no reason to call it worse. Kept in baselines/accepted.yaml, for git.",
    )
    accept.add_argument("metric", help="benchmark, or benchmark/case/metric; * stands for anything")
    accept.add_argument("--since", required=True, metavar="RUN", help="first run with the change")
    accept.add_argument("--why", required=True, help="one sentence")
    arguments.add_results(accept)
    accept.set_defaults(func=_accept)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list what did not change, too")
    parser.add_argument(
        "--level",
        type=float,
        default=None,
        help="false discovery rate to hold, default 0.12 (see docs/judging.md)",
    )
    for name in ("json", "junit", "markdown", "openmetrics"):
        parser.add_argument(
            f"--{name}", type=Path, metavar="FILE", help="write it there, too (- for here only)"
        )


def _check(options: argparse.Namespace) -> int:
    if len(options.run) > 1 and any(_outputs(options)):
        raise UsageError("a file for the verdicts is of one run: check one at a time")
    wanted = against.wanted(options.against)
    statuses: list[ExitStatus] = []
    for given in options.run:
        try:
            folder = against.run_folder(given, options.results)
            statuses.append(_check_one(options, folder, wanted))
        except EvmperfError as error:
            if len(options.run) == 1:
                raise
            # The others are judged all the same.
            print(f"evmperf: {given}: {error}", file=sys.stderr)
            statuses.append(of_kind(error.kind))
    return next(status for status in _GRAVEST_FIRST if status in statuses)


def _check_one(options: argparse.Namespace, folder: Path, what: Wanted) -> ExitStatus:
    with sources.earlier(options, read_run(folder).lab) as source:
        if options.calibrate:
            print(against.calibrated(folder, what, source, _level(options)))
            return ExitStatus.OK
        judgement, sides = _judge(options, folder, what, source)
    judgement = confirming.confirmed(options, folder, judgement, sides.good)
    known = (sides.before, sides.after)
    changed = differences.between(*known) if all(known) else []
    _write(options, judgement, changed)
    said = _say(options, known, changed, "What else changed") if all(known) else ""
    if not options.dry_run:
        _keep(folder, judgement, said)
    return judgement.exit_status


def _keep(folder: Path, judgement: Judgement, changed: str) -> None:
    """Put verdicts where people look. A run that is still being measured is its session's."""
    if spool.read_run(folder).kind == GUIDE:
        return
    if spool.is_live(folder):
        print(
            f"evmperf: {folder}: is still being measured; check it again at its end to keep the verdicts",
            file=sys.stderr,
        )
        return
    records.keep(folder, judgement)
    with contextlib.suppress(FileNotFoundError):
        (folder / page.CHANGED).unlink()
    if changed:
        (folder / page.CHANGED).write_text(changed, encoding="utf-8")
    page.write(folder)
    sources.keep([folder])
    if problem := send_if_named(folder):
        print(f"evmperf: {problem}", file=sys.stderr)


def _compare(options: argparse.Namespace) -> int:
    sides = [
        [against.run_folder(given, options.results) for given in ([one] if one else many)]
        for one, many in ((options.a, options.side_a), (options.b, options.side_b))
    ]
    if not all(sides):
        raise UsageError("compare takes two sides: compare A B, or compare --a RUN... --b RUN...")
    if max(map(len, sides)) > 1:
        judgement = against.between(sides[0], sides[1], options.level or judge.LEVEL)
    else:
        what = against.Wanted("run", options.a or options.side_a[0])
        judgement, _ = _judge(options, sides[1][0], what, SpoolFolder(options.results))
    changed = differences.between(sides[0], sides[1])
    _write(options, judgement, changed)
    _say(options, sides, changed, "What differs besides")
    return judgement.exit_status


def _say(
    options: argparse.Namespace, sides: Sequence[Sequence[Path]], changed: Sequence[Difference], title: str
) -> str:
    """Name what differs between two sides in the same breath as the verdicts, unless a program
    reads what we print; returns what was to say.
    """
    names = (" ".join(folder.name for folder in side) for side in sides)
    head = [f"{title} (A: {next(names)}; B: {next(names)}):"]
    lines = [*head, *report.lines(changed)] if changed else ["Nothing else that is known differs."]
    text = "".join(f"{line}\n" for line in lines)
    if Path("-") not in _outputs(options):
        print(text, end="")
    return text


def _judge(
    options: argparse.Namespace, folder: Path, what: Wanted, source: RunSource
) -> tuple[Judgement, Sides]:
    """Judge a run by what a source has; with it the runs before and after what got worse."""
    judgement = against.judged(folder, what, source, _level(options), _read_guide)
    return judgement, against.sides(folder, what, source, judgement)


def _level(options: argparse.Namespace) -> float:
    level: float = judge.LEVEL if options.level is None else options.level
    if not 0 < level < 1:
        raise UsageError(f"--level {level:g}: must be between 0 and 1")
    return level


def _read_guide(file: Path, board: str) -> StoredRun:
    return importer.stored(file, board)


def _outputs(options: argparse.Namespace) -> tuple[Path | None, ...]:
    """The files that the verdicts go into."""
    return options.json, options.junit, options.markdown, options.openmetrics


def _write(options: argparse.Namespace, judgement: Judgement, changed: Sequence[Difference]) -> None:
    makers: dict[Path | None, Callable[[Judgement], str]] = {
        options.json: functools.partial(formats.as_json, changed=changed),
        options.junit: formats.as_junit,
        options.markdown: functools.partial(formats.as_markdown, changed=changed),
        options.openmetrics: formats.as_openmetrics,
    }
    makers.pop(None, None)
    for file, make in makers.items():
        if file and file != Path("-"):
            file.write_text(make(judgement), encoding="utf-8")
    if here := makers.get(Path("-")):
        sys.stdout.write(here(judgement))
    else:
        width = None if sys.stdout.isatty() else 160
        sys.stdout.write(formats.text(judgement, options.all, width))


def _accept(options: argparse.Namespace) -> int:
    run = read_run(against.run_folder(options.since, options.results))
    pattern = accepted.pattern(options.metric)
    mark = accepted.Accepted(pattern, run.board, run.id, run.started_ns, options.why)
    _known(pattern)
    accepted.add(mark)
    print(f"{accepted.FILE}: {pattern} on {run.board} accepted since {run.id}")
    return 0


def _known(pattern: str) -> None:
    """Raise UsageError for a metric of a benchmark that does not exist."""
    benchmark = pattern.partition("/")[0]
    if not fnmatch.filter(tables(), benchmark):
        near = difflib.get_close_matches(benchmark, tables(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"there is no benchmark {benchmark!r}{hint}")
