"""`evmperf check` and `compare`: runs judged, and what differs between them."""

import argparse
import dataclasses
import fnmatch
import functools
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from evmperf.commands.app import sources, why
from evmperf.commands.app.again import in_turn
from evmperf.commands.cli.arguments import RESULTS, SOURCE, WAIT, argument, command, duration, share, tell
from evmperf.commands.cli.terminal import width
from evmperf.explain import ranges
from evmperf.judge import accepted, against, confirm, experiment, goals, judge, shift
from evmperf.judge.against import WantedBaseline
from evmperf.judge.published.declared import tables
from evmperf.measure.runs import differences, spool
from evmperf.measure.runs.differences import Difference
from evmperf.measure.runs.history import GUIDE, SpoolFolder
from evmperf.model.errors import EvmperfError, UsageError, meant
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.figures import figures
from evmperf.model.outlets import line
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome
from evmperf.publish.influx import push
from evmperf.publish.report import ab, page
from evmperf.publish.report import differences as differing
from evmperf.publish.report import verdicts as formats

_GRAVEST_FIRST = (
    ExitStatus.USAGE,
    ExitStatus.LAB_BROKEN,
    ExitStatus.INTERRUPTED,
    ExitStatus.FAILED,
    ExitStatus.UNDECIDED,
    ExitStatus.OK,
    ExitStatus.NOTHING,
)
_AGAINST = "last:20"
_FORMATS = ("json", "junit", "markdown", "openmetrics")
_TOLD = 7
"""Lines of what else changed: a new kernel differs in hundreds."""

_SIDES = (
    argument("a", nargs="?", default="", metavar="A", help="a run, named as for `evmperf show`"),
    argument("b", nargs="?", default="", metavar="B", help="the run to compare with A"),
    argument("--a", default=[], dest="side_a", metavar="RUN", nargs="+", help="runs of side A"),
    argument("--b", default=[], dest="side_b", metavar="RUN", nargs="+", help="runs of side B"),
)
_OUTPUT = (
    argument("--all", action="store_true", help="list unchanged figures, too"),
    argument(
        "--level",
        type=share,
        help=f"false discovery rate to hold, default {shift.LEVEL} against earlier runs, else {judge.LEVEL}",
    ),
    *(
        argument(f"--{name}", type=Path, metavar="FILE", help="write it there, too (- only prints it)")
        for name in _FORMATS
    ),
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
        default=_AGAINST,
        help=f"release:11.00, run:ID, last:N (earlier runs of the board), or guide:FILE; default: {_AGAINST}",
    ),
    SOURCE,
    argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="judge nothing but boots, part by part, by this file of `evmperf export --reference`",
    ),
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
    argument(
        "--no-one-night",
        action="store_false",
        dest="one_night",
        help=f"no single night decides on a loss: it is suspected until {shift.SETTLED} nights agree",
    ),
    *_OUTPUT,
    epilog="""Exit status: 0 no decided figure is worse, 1 a loss of the software under test is open
    tonight or a goal missed, 5 nothing comparable, 6 no figure decided, a change suspected,
    an alarm in doubt, or the board itself changed. Of several runs the worst counts.
    """,
)
def _check(options: argparse.Namespace) -> int:
    """Judge runs: same, better, worse, or not comparable, metric by metric. The verdicts go into the run
    in place of earlier ones, its report is written again, and they go to InfluxDB if it is configured.
    The run goes into the lab's history, if one is named [EVMPERF_HISTORY: a folder of runs]. Published
    figures are left as they are.
    """
    if options.accept:
        _accept(options)
        return ExitStatus.OK
    if len(options.run) > 1 and any(getattr(options, name) for name in _FORMATS):
        raise UsageError("a file of verdicts is for one run: check one at a time")
    what = against.parse(options.against)
    statuses: list[ExitStatus] = []
    for given in options.run:
        try:
            folder = against.run_folder(given, options.results)
            statuses.append(
                _outside(folder, options.reference) if options.reference else _checked(options, folder, what)
            )
        except EvmperfError as error:
            # One of several that cannot be judged does not keep the others from it.
            if len(options.run) == 1:
                raise
            tell(f"{given}: {error}")
            statuses.append(of_kind(error.kind))
    return next((status for status in _GRAVEST_FIRST if status in statuses), ExitStatus.NOTHING)


def _checked(options: argparse.Namespace, folder: Path, what: WantedBaseline) -> ExitStatus:
    """Judge one run, tell and keep that; raises UsageError for what there is not, LabError for the disk."""
    run = spool.read_run(folder)
    # A goal that cannot be understood is said before anything is judged.
    lab_goals = goals.of_run(run)
    results = options.results if options.results.is_dir() else folder.parent
    with sources.opened(options.source, results, run.lab) as source:
        judgement = against.judged(folder, what, source, options.level, one_night=options.one_night)
        good, before, after = against.sides(folder, what, source, judgement)
    by_key = figures(spool.read_results(folder)) if lab_goals else {}
    reached = [
        goal.reached(by_key[goal.key].mean, by_key[goal.key].unit)
        if goal.key in by_key
        else goal.reached(None, "")
        for goal in lab_goals
    ]
    # What is to be typed next is typed here, too.
    where = "" if folder.parent == Path("results") else f" --results {shlex.quote(str(folder.parent))}"
    causes = [replace(c, command=c.command and f"{c.command}{where}") for c in judgement.causes]
    judgement = replace(judgement, goals=reached, causes=causes)
    if options.confirm and judgement.perhaps_worse:
        try:
            judgement = _confirmed(options, folder, judgement, good)
        except EvmperfError as error:  # the alarms stay
            judgement = replace(judgement, again=f"not checked again: {error}")
    changed: Sequence[Difference] = ()
    differs = ""
    if before and after:
        changed = differences.between(before, after, nights=True)
        differs = _listed(changed, f"What else changed from {before[-1].name} (A) to {after[0].name} (B)")
    _write(options, judgement, changed, differs)
    if not options.dry_run:
        _keep(folder, judgement, differs)
    return judgement.exit_status


def _outside(folder: Path, file: Path) -> ExitStatus:
    """Tell which parts of a run's boots are outside a reference; raises UsageError."""
    run = spool.read_run(folder)
    sentences, status = ranges.held(folder, run, ranges.read(file, run.board))
    print("\n".join(map(line, sentences)))
    return status


def _confirmed(
    options: argparse.Namespace, folder: Path, judgement: Judgement, good: Run | None
) -> Judgement:
    """The judgement with an A/B's word on its alarms; raises EvmperfError where there can be none."""
    if good is None:
        raise UsageError("no earlier good run is known")
    board = options.board or spool.read_run(folder).facts.board_file
    plan = confirm.asked(folder, judgement, good, board, options.confirm)
    folder_of_ab = folder.parent / plan.id
    if (folder_of_ab / experiment.FILE).exists():
        plan = experiment.Experiment.load(folder_of_ab)  # it was interrupted
    tell(f"checking again against {good.id}")
    comparison = in_turn(folder_of_ab, plan, options.wait, tell)
    ab.write(folder_of_ab, comparison, ())
    return confirm.settled(judgement, comparison, good.id, plan.board)


def _keep(folder: Path, judgement: Judgement, changed: str) -> None:
    """Put verdicts where people look. A run that is still being measured is its session's."""
    if spool.read_run(folder).kind == GUIDE:
        return
    if spool.is_live(folder):
        tell(f"{folder}: is still being measured; check it again after its end to keep the verdicts")
        return
    against.keep(folder, judgement)
    if changed:
        (folder / page.CHANGED).write_text(changed, encoding="utf-8")
    else:
        (folder / page.CHANGED).unlink(missing_ok=True)
    decided = any(map(judgement.count, (Outcome.WORSE, Outcome.BETTER, Outcome.SAME)))
    # A first run has nothing to be judged by: its page stays as it was.
    if decided or judgement.goals or not (folder / page.NAME).is_file():
        why.report(folder)
    sources.keep(folder, tell)
    if sent := push.end(folder):
        tell(sent)


def _sides(options: argparse.Namespace) -> list[list[Path]]:
    """The folders of the runs of both sides; raises UsageError unless each has one."""
    sides = [[*filter(None, [options.a, *options.side_a])], [*filter(None, [options.b, *options.side_b])]]
    if not all(sides):
        raise UsageError("two sides are needed: A B, or --a RUN... --b RUN...")
    return [[against.run_folder(run, options.results) for run in side] for side in sides]


def _listed(changed: Sequence[Difference], title: str) -> str:
    """What differs between two sides of runs, in lines."""
    lines = [f"{title}:", *differing.lines(changed)] if changed else ["No other known difference."]
    return "".join(f"{line}\n" for line in lines)


@command(
    "compare",
    *_SIDES,
    RESULTS,
    argument("--facts", action="store_true", help="judge nothing: only what differs besides the figures"),
    *_OUTPUT,
    epilog="""Exit status: 0 no decided figure is worse, 1 a figure is worse or a goal missed, 5 nothing
    comparable, 6 no figure decided, or a change suspected.
    """,
)
def _compare(options: argparse.Namespace) -> int:
    """Judge run B by run A. With --facts it lists the differences between the two in everything known about
    them: options, image, kernel, command line, device tree by node, kernel configuration, modules, kernel
    messages, U-Boot, CPU frequency, mitigations, tools, media; likely causes come first. With several runs
    per side, it lists only differences that all runs of a side share, and the exit status is 0.
    """
    a, b = _sides(options)
    if options.facts:
        listed = differences.between(a, b)
        print(
            json.dumps([dataclasses.asdict(entry) for entry in listed], indent=1)
            if options.json
            else differing.text(listed, everything=options.all).rstrip("\n")
        )
        return ExitStatus.OK
    if len(a) > 1 or len(b) > 1:
        judgement = against.between(a, b, options.level)
    else:
        baseline = WantedBaseline("run", options.a or options.side_a[0])
        judgement = against.judged(b[0], baseline, SpoolFolder(options.results), options.level)
    changed = differences.between(a, b)
    names = (" ".join(folder.name for folder in side) for side in (a, b))
    title = "What differs besides (A: {}; B: {})".format(*names)
    _write(options, judgement, changed, _listed(changed, title))
    return judgement.exit_status


def _write(
    options: argparse.Namespace, judgement: Judgement, changed: Sequence[Difference], differs: str
) -> None:
    """Write the verdicts, and print them unless a program reads the output, with what differs besides."""
    makers: dict[Path | None, Callable[[Judgement], str]] = {
        options.json: functools.partial(formats.as_json, changed=changed),
        options.junit: formats.as_junit,
        options.markdown: functools.partial(formats.as_markdown, changed=changed),
        options.openmetrics: formats.as_openmetrics,
    }
    here = makers.pop(Path("-"), None)
    for file, make in makers.items():
        if file:
            file.write_text(make(judgement), encoding="utf-8")
    lines = differs.splitlines(keepends=True)
    if (more := len(lines) - _TOLD) > 1 and not options.all:
        lines = [*lines[:_TOLD], f"  ... and {more} more lines (--all)\n"]
    text = formats.text(judgement, options.all, width()) + "".join(lines)
    sys.stdout.write(here(judgement) if here else text)


def _accept(options: argparse.Namespace) -> None:
    """Mark an intended change, for git: from that run on, the metric is not compared with older figures."""
    if not options.since or not options.why:
        raise UsageError("--accept needs --since RUN, the first run with the change, and --why SENTENCE")
    run = spool.read_run(against.run_folder(options.since, options.results))
    pattern = accepted.pattern(options.accept)
    mark = accepted.Accepted(pattern, run.board, run.id, run.started_ns, options.why)
    benchmark = pattern.partition("/")[0]
    if not fnmatch.filter(tables(), benchmark):
        raise UsageError(f"unknown benchmark {benchmark!r}{meant(benchmark, tables())}")
    accepted.add(mark)
    print(f"{accepted.FILE}: {pattern} on {run.board} accepted since {run.id}")
