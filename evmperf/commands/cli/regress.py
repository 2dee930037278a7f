"""`evmperf check`, `compare`, `explain` and `accept`: runs judged, and what differs between them."""

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
from evmperf.commands.app.requests import Check, Compare
from evmperf.commands.cli.arguments import command, requested, say, tell
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


@command("check")
def _check(options: argparse.Namespace) -> int:
    if len(options.run) > 1 and any((options.json, options.junit, options.markdown, options.openmetrics)):
        raise UsageError("a file of verdicts is for one run: check one at a time")
    times = {"confirm_s": options.confirm, "wait_s": options.wait}
    request = requested(Check, options, runs=options.run, keep=not options.dry_run, **times)
    if options.calibrate:
        print("\n".join(judging.calibrated(request)))
        return ExitStatus.OK
    checked = judging.check(request, say, functools.partial(_write, options))
    for problem in checked.failed:
        tell(problem)
    return checked.status


def _sides(options: argparse.Namespace) -> Compare:
    a, b = [options.a, *options.side_a], [options.b, *options.side_b]
    return requested(Compare, options, a=[*filter(None, a)], b=[*filter(None, b)])


@command("compare")
def _compare(options: argparse.Namespace) -> int:
    found = judging.compare(_sides(options))
    _write(options, found)
    return found.judgement.exit_status


def _write(options: argparse.Namespace, found: judging.Conclusion) -> None:
    """Write the verdicts, and print them unless a program reads the output, with what differs besides."""
    makers: dict[Path | None, Callable[[Judgement], str]] = {
        options.json: functools.partial(formats.as_json, changed=found.differences),
        options.junit: formats.as_junit,
        options.markdown: functools.partial(formats.as_markdown, changed=found.differences),
        options.openmetrics: formats.as_openmetrics,
    }
    here = makers.pop(Path("-"), None)
    for file, make in makers.items():
        if file:
            file.write_text(make(found.judgement), encoding="utf-8")
    text = formats.text(found.judgement, options.all, width()) + found.told
    sys.stdout.write(here(found.judgement) if here else text)


@command("explain")
def _explain(options: argparse.Namespace) -> None:
    found = differences.between(*judging.sides(_sides(options)))
    if options.json:
        print(json.dumps([dataclasses.asdict(entry) for entry in found], indent=1))
    else:
        print(differing.text(found, everything=options.all), end="")


@command("accept")
def _accept(options: argparse.Namespace) -> None:
    run = read_run(against.run_folder(options.since, options.results))
    pattern = accepted.pattern(options.metric)
    mark = accepted.Accepted(pattern, run.board, run.id, run.started_ns, options.why)
    benchmark = pattern.partition("/")[0]
    if not fnmatch.filter(tables(), benchmark):
        near = difflib.get_close_matches(benchmark, tables(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown benchmark {benchmark!r}{hint}")
    accepted.add(mark)
    print(f"{accepted.FILE}: {pattern} on {run.board} accepted since {run.id}")
