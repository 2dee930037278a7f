"""`evmperf ab`, `bisect` and `bisect-step`: sides of a board measured in turn."""

import argparse
import contextlib
import sys

from rich.console import Console, Group
from rich.live import Live

from evmperf.commands.app import experiments
from evmperf.commands.app.requests import Bisect, MeasureSides
from evmperf.commands.cli.arguments import command, requested, say, tell
from evmperf.commands.cli.terminal import note, own, width
from evmperf.judge.search import StepAnswer
from evmperf.model.change import Comparison
from evmperf.model.errors import EvmperfError
from evmperf.publish.report import ab as report

_SKIP, _STOP = 125, 128
"""What a step says to git: it cannot tell, and no further step."""


@command("ab")
def _ab(options: argparse.Namespace) -> int:
    # A live table moves the cursor; what others said in it is made text by who fills it.
    console = Console(file=own(sys.stderr))
    live = Live(console=console, auto_refresh=False)
    with live if console.is_terminal else contextlib.nullcontext():

        def show(comparison: Comparison, plan: str) -> None:
            minutes = f"{comparison.spent_s / 60:.0f} min"
            line = f"{comparison.sentence()} ({minutes}, {len(comparison.open)} still open)"
            line += plan and f"; {plan}"
            if console.is_terminal:
                live.update(Group(report.table(comparison), line), refresh=True)
            else:
                note(line)

        measured = experiments.ab(requested(MeasureSides, options), say, show)
    comparison, changed = measured.comparison, measured.differences
    if options.json:
        print(report.as_json(comparison, changed), end="")
    elif options.markdown:
        print(report.as_markdown(comparison, changed), end="")
    else:
        shown = report.text(comparison, changed, everything=options.all, width=width(140))
        print(f"{shown}Report: {measured.folder}/ab.html")
    if comparison.open:
        more = "--budget" if "budget" in comparison.ended else "--rounds"
        open_now = f"{len(comparison.open)} not decided; to go on, with more {more}"
        tell(f"{open_now}: evmperf ab --resume {measured.folder}")
    return measured.status


@command("bisect")
def _bisect(options: argparse.Namespace) -> int:
    found = experiments.bisect(requested(Bisect, options), say)
    print("".join(f"{line}\n" for line in found.lines), end="")
    return found.status


@command("bisect-step")
def _step(options: argparse.Namespace) -> int:
    try:
        step, stuck = experiments.bisect_step(options.folder, options.version, say)
    except EvmperfError as error:
        tell(str(error))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # git takes 1 for "bad"
        tell(f"{type(error).__name__}: {error}")
    else:
        if not stuck:
            return {StepAnswer.GOOD: 0, StepAnswer.BAD: 1}.get(step.answer, _SKIP)
    return _STOP
