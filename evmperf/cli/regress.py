"""`evmperf check`, `compare`, `explain` and `accept`: runs judged, and what differs between them."""

import argparse
import dataclasses
import difflib
import fnmatch
import functools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from evmperf.app import judging, sources
from evmperf.app.requests import Check
from evmperf.cli.arguments import command, requested, say, tell
from evmperf.cli.terminal import width
from evmperf.guide import importer
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.verdict import Judgement
from evmperf.published.declared import tables
from evmperf.published.releases import BASELINES
from evmperf.regress import accepted, against
from evmperf.report import differences as differing
from evmperf.report import verdicts as formats
from evmperf.runs import differences
from evmperf.runs.differences import Difference
from evmperf.runs.history import run_folder
from evmperf.runs.spool import read_run


@command("check")
def _check(options: argparse.Namespace) -> int:
    if len(options.run) > 1 and any(_outputs(options)):
        raise UsageError("a file of verdicts is for one run: check one at a time")
    wanted = against.wanted(options.against)
    times = {"confirm_s": options.confirm, "wait_s": options.wait}
    request = requested(Check, options, runs=options.run, keep=not options.dry_run, **times)
    if options.calibrate:
        for given in options.run:
            folder = against.run_folder(given, options.results)
            with sources.opened(options.source, options.results, read_run(folder).lab) as source:
                print(against.calibrated(folder, wanted, source, judging.level(options.level)))
        return ExitStatus.OK

    def show(found: judging.Conclusion) -> None:
        _write(options, found.judgement, found.differences)
        _say(options, found.told)

    checked = judging.check(request, say, show)
    for problem in checked.failed:
        tell(problem)
    return checked.status


def _sides(options: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """The folders of the runs of _SIDES; raises UsageError unless each side has one."""
    named = ((options.a, options.side_a), (options.b, options.side_b))
    a, b = (
        [run_folder(given, options.results, BASELINES) for given in filter(None, [one, *more])]
        for one, more in named
    )
    if not a or not b:
        raise UsageError("two sides are needed: A B, or --a RUN... --b RUN...")
    return a, b


@command("compare")
def _compare(options: argparse.Namespace) -> int:
    a, b = _sides(options)
    level = judging.level(options.level)
    if len(a) > 1 or len(b) > 1:
        judgement = against.between(a, b, level)
    else:
        what = against.WantedBaseline("run", options.a or options.side_a[0])
        with sources.opened(str(options.results)) as source:
            judgement = against.judged(b[0], what, source, level, importer.stored)
    changed = differences.between(a, b)
    _write(options, judgement, changed)
    _say(options, judging.named([a, b], changed, "What differs besides"))
    return judgement.exit_status


def _say(options: argparse.Namespace, text: str) -> None:
    """Print the differences of two sides beside the verdicts, unless a program reads the output."""
    if Path("-") not in _outputs(options):
        print(text, end="")


def _outputs(options: argparse.Namespace) -> tuple[Path | None, ...]:
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
        sys.stdout.write(formats.text(judgement, options.all, width()))


@command("explain")
def _explain(options: argparse.Namespace) -> None:
    found = differences.between(*_sides(options))
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in found], indent=1))
    else:
        print(differing.text(found, everything=options.all), end="")


@command("accept")
def _accept(options: argparse.Namespace) -> None:
    run = read_run(against.run_folder(options.since, options.results))
    pattern = accepted.pattern(options.metric)
    mark = accepted.Accepted(pattern, run.board, run.id, run.started_ns, options.why)
    _known(pattern)
    accepted.add(mark)
    print(f"{accepted.FILE}: {pattern} on {run.board} accepted since {run.id}")


def _known(pattern: str) -> None:
    """Raise UsageError for a metric of a benchmark that does not exist."""
    benchmark = pattern.partition("/")[0]
    if not fnmatch.filter(tables(), benchmark):
        near = difflib.get_close_matches(benchmark, tables(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown benchmark {benchmark!r}{hint}")
