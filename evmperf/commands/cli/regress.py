"""`evmperf check`, `compare` and `explain`: runs judged, and what differs between them."""

import argparse
import dataclasses
import difflib
import fnmatch
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path

from evmperf.commands.app import judging
from evmperf.commands.cli.arguments import JSON, RESULTS, SOURCE, WAIT, argument, command, duration, tell
from evmperf.commands.cli.terminal import width
from evmperf.guides.published.declared import tables
from evmperf.judge import accepted, against
from evmperf.measure.runs import differences
from evmperf.measure.runs.spool import read_run
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.verdict import Judgement
from evmperf.publish.report import differences as differing
from evmperf.publish.report import verdicts as formats

_SIDES = (
    argument(
        "a",
        nargs="?",
        default="",
        metavar="A",
        help="a run's folder, its name below --results or the beginning of it, `last`, or `last~1`",
    ),
    argument("b", nargs="?", default="", metavar="B", help="the run to compare with A"),
    argument("--a", default=[], dest="side_a", metavar="RUN", nargs="+", help="runs of side A"),
    argument("--b", default=[], dest="side_b", metavar="RUN", nargs="+", help="runs of side B"),
)
_OUTPUT = (
    argument("--all", action="store_true", help="list unchanged figures, too"),
    argument(
        "--level",
        type=float,
        help="false discovery rate to hold, default 0.14 against earlier runs, else 0.12",
    ),
    argument("--json", type=Path, metavar="FILE", help="write it there, too (- only prints it)"),
    argument("--junit", type=Path, metavar="FILE", help="write it there, too (- only prints it)"),
    argument("--markdown", type=Path, metavar="FILE", help="write it there, too (- only prints it)"),
)


@command(
    "check",
    argument(
        "run",
        nargs="*",
        default=["last"],
        help="a run's folder, its name below --results or the beginning of it, `last~1`; default: `last`",
    ),
    RESULTS,
    argument(
        "--against",
        metavar="WHAT",
        default="last:20",
        help="release:11.00, run:ID, last:N (earlier runs of the board), or guide:FILE; default: last:20",
    ),
    SOURCE,
    argument("--dry-run", action="store_true", help="only print the verdicts"),
    argument(
        "--confirm",
        type=duration,
        default=0.0,
        metavar="BUDGET",
        help=(
            "measure worse figures again before reporting them: an A/B with the image of the "
            "last good run on the same board, within this time (30m, 2h)"
        ),
    ),
    argument("--board", default="", metavar="FILE", help="the board for it (default: the run's own)"),
    WAIT,
    argument(
        "--accept",
        default="",
        metavar="METRIC",
        help="judge nothing, but mark a change as intended in baselines/accepted.yaml: a benchmark, or "
        "benchmark/case/metric; * stands for anything",
    ),
    argument("--since", default="", metavar="RUN", help="with --accept: the first run with the change"),
    argument("--why", default="", metavar="SENTENCE", help="with --accept: the reason"),
    *_OUTPUT,
    epilog="""Exit status: 0 no decided figure is worse, 1 a loss of the software under test is open
    tonight or a goal missed, 5 nothing comparable, 6 no figure decided, a change suspected,
    an alarm in doubt, or the board itself changed. Of several runs the worst counts.
    """,
)
def _check(options: argparse.Namespace) -> int:
    """Judge runs: same, better, worse, or not comparable, metric by metric. The verdicts go into the run
    in place of earlier ones, its report is written again, and they go to InfluxDB if it is configured.
    The run goes into the lab's store, if one is named [EVMPERF_HISTORY: a folder or a URL]. Published
    figures are left as they are.
    """
    if options.accept:
        _accept(options)
        return ExitStatus.OK
    if len(options.run) > 1 and any((options.json, options.junit, options.markdown)):
        raise UsageError("a file of verdicts is for one run: check one at a time")
    how = judging.Check(
        against=options.against,
        results=options.results,
        source=options.source,
        level=options.level,
        confirm_s=options.confirm,
        board=options.board,
        wait_s=options.wait,
        keep=not options.dry_run,
    )
    status, failed = judging.check(options.run, how, tell, functools.partial(_write, options))
    for problem in failed:
        tell(problem)
    return status


def _sides(options: argparse.Namespace) -> tuple[list[str], list[str], Path]:
    a, b = [options.a, *options.side_a], [options.b, *options.side_b]
    return [*filter(None, a)], [*filter(None, b)], options.results


@command(
    "compare",
    *_SIDES,
    RESULTS,
    *_OUTPUT,
    epilog="""Exit status: 0 no decided figure is worse, 1 a figure is worse or a goal missed, 5 nothing
    comparable, 6 no figure decided, or a change suspected.
    """,
)
def _compare(options: argparse.Namespace) -> int:
    """Judge run B by run A."""
    conclusion = judging.compare(*_sides(options), options.level)
    _write(options, conclusion)
    return conclusion.judgement.exit_status


def _write(options: argparse.Namespace, conclusion: judging.Conclusion) -> None:
    """Write the verdicts, and print them unless a program reads the output, with what differs besides."""
    makers: dict[Path | None, Callable[[Judgement], str]] = {
        options.json: functools.partial(formats.as_json, changed=conclusion.differences),
        options.junit: formats.as_junit,
        options.markdown: functools.partial(formats.as_markdown, changed=conclusion.differences),
    }
    here = makers.pop(Path("-"), None)
    for file, make in makers.items():
        if file:
            file.write_text(make(conclusion.judgement), encoding="utf-8")
    lines = conclusion.told.splitlines(keepends=True)
    if (more := len(lines) - _TOLD) > 1 and not options.all:
        lines = [*lines[:_TOLD], f"  ... and {more} more lines (--all)\n"]
    text = formats.text(conclusion.judgement, options.all, width()) + "".join(lines)
    sys.stdout.write(here(conclusion.judgement) if here else text)


_TOLD = 7
"""Lines of what else changed: a new kernel differs in hundreds."""


@command(
    "explain", JSON, RESULTS, *_SIDES, argument("--all", action="store_true", help="every line, however many")
)
def _explain(options: argparse.Namespace) -> None:
    """Lists the differences between two runs in everything known about them: options, image, kernel, command
    line, device tree by node, kernel configuration, modules, kernel messages, U-Boot, CPU frequency,
    mitigations, tools, media; likely causes come first. With several runs per side, it lists only
    differences that all runs of a side share. The exit status is 0 whether anything differs or not.
    """
    listed = differences.between(*judging.sides(*_sides(options)))
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in listed], indent=1))
    else:
        print(differing.text(listed, everything=options.all), end="")


def _accept(options: argparse.Namespace) -> None:
    """Mark an intended change, for git: from that run on, the metric is not compared with older figures."""
    if not options.since or not options.why:
        raise UsageError("--accept needs --since RUN, the first run with the change, and --why SENTENCE")
    run = read_run(against.run_folder(options.since, options.results))
    pattern = accepted.pattern(options.accept)
    mark = accepted.Accepted(pattern, run.board, run.id, run.started_ns, options.why)
    benchmark = pattern.partition("/")[0]
    if not fnmatch.filter(tables(), benchmark):
        near = difflib.get_close_matches(benchmark, tables(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown benchmark {benchmark!r}{hint}")
    accepted.add(mark)
    print(f"{accepted.FILE}: {pattern} on {run.board} accepted since {run.id}")
