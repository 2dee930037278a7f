"""`evmperf check`, `evmperf compare` and `evmperf accept`."""

import argparse
import difflib
import fnmatch
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evmperf.app import judging, sources
from evmperf.app.requests import Check
from evmperf.cli import arguments
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.verdict import Judgement
from evmperf.published.declared import tables
from evmperf.regress import accepted, against
from evmperf.report import verdicts as formats
from evmperf.runs import differences
from evmperf.runs.differences import Difference
from evmperf.runs.spool import read_run

_EPILOG = (
    "Exit status: 0 nothing of what could be told is worse, 1 something worse or a goal missed, 5 "
    "nothing comparable, 6 nothing could be told, or something is suspected."
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
    arguments.add_from(check)
    check.add_argument(
        "--calibrate",
        action="store_true",
        help="judge the past nights, each by those before it, and say how many would have raised "
        "an alarm; nothing is kept",
    )
    check.add_argument("--dry-run", action="store_true", help="only say what the verdicts are")
    check.add_argument(
        "--confirm",
        type=arguments.duration,
        default=0.0,
        metavar="BUDGET",
        help="check what is worse again before anybody is told: an A/B with the image of the last "
        "good run on the same board, within this time (30m, 2h)",
    )
    check.add_argument("--board", metavar="FILE", help="the board for it (default: the run's own)")
    arguments.add_wait(check)
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
        help="false discovery rate to hold, default 0.15 against earlier runs, else 0.12",
    )
    for name in ("json", "junit", "markdown", "openmetrics"):
        parser.add_argument(
            f"--{name}", type=Path, metavar="FILE", help="write it there, too (- for here only)"
        )


def _check(options: argparse.Namespace) -> int:
    if len(options.run) > 1 and any(_outputs(options)):
        raise UsageError("a file for the verdicts is of one run: check one at a time")
    wanted = against.wanted(options.against)
    request = Check(
        runs=tuple(options.run),
        against=options.against,
        results=str(options.results),
        source=options.source or "",
        level=options.level,
        confirm_s=options.confirm,
        board=options.board or "",
        wait_s=options.wait,
        keep=not options.dry_run,
    )
    if options.calibrate:
        for given in options.run:
            folder = against.run_folder(given, options.results)
            with sources.earlier(options.source, options.results, read_run(folder).lab) as source:
                print(against.calibrated(folder, wanted, source, judging.level(options.level)))
        return ExitStatus.OK

    def show(found: judging.Conclusion) -> None:
        _write(options, found.judgement, found.differences)
        _say(options, found.told)

    checked = judging.check(request, arguments.say, show)
    for problem in checked.failed:
        print(f"evmperf: {problem}", file=sys.stderr)
    return checked.status


def _compare(options: argparse.Namespace) -> int:
    sides = [
        [against.run_folder(given, options.results) for given in ([one] if one else many)]
        for one, many in ((options.a, options.side_a), (options.b, options.side_b))
    ]
    if not all(sides):
        raise UsageError("compare takes two sides: compare A B, or compare --a RUN... --b RUN...")
    level = judging.level(options.level)
    if max(map(len, sides)) > 1:
        judgement = against.between(sides[0], sides[1], level)
    else:
        what = against.Wanted("run", options.a or options.side_a[0])
        with sources.opened(str(options.results)) as source:
            judgement = against.judged(sides[1][0], what, source, level, judging.read_guide)
    changed = differences.between(sides[0], sides[1])
    _write(options, judgement, changed)
    _say(options, judging.named(sides, changed, "What differs besides"))
    return judgement.exit_status


def _say(options: argparse.Namespace, text: str) -> None:
    """Name what differs between two sides in the same breath as the verdicts, unless a program
    reads what we print.
    """
    if Path("-") not in _outputs(options):
        print(text, end="")


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
