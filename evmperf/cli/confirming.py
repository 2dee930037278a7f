"""`evmperf check --confirm`: an alarm is checked again before anybody is told."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from evmperf.cli import arguments
from evmperf.cli.holding import Holding
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome
from evmperf.regress import ab, confirm, experiment
from evmperf.regress.sessions import Sessions
from evmperf.report import ab as report
from evmperf.runs.spool import read_run


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what checking again needs."""
    parser.add_argument(
        "--confirm",
        type=arguments.duration,
        default=0.0,
        metavar="BUDGET",
        help="check what is worse again before anybody is told: an A/B with the image of the last "
        "good run on the same board, within this time (30m, 2h)",
    )
    parser.add_argument(
        "--board", metavar="FILE", help="the board for it (default: the file that the run names)"
    )
    arguments.add_wait(parser)


def confirmed(options: argparse.Namespace, folder: Path, judgement: Judgement, good: Run | None) -> Judgement:
    """The judgement with what an A/B says of its alarms. Where there can be none, the alarms stay,
    with the reason.
    """
    if not options.confirm or not judgement.count(Outcome.WORSE):
        return judgement
    try:
        return _again(options, folder, judgement, good)
    except EvmperfError as error:
        return replace(judgement, again=f"not checked again: {error}")


def _again(options: argparse.Namespace, folder: Path, judgement: Judgement, good: Run | None) -> Judgement:
    if good is None:
        raise UsageError("no earlier run is known that was good")
    run = read_run(folder)
    sides = confirm.images(good, run)
    board = options.board or str(run.facts.get("board_file", ""))
    wanted = confirm.asked(folder, judgement, board, sides, options.confirm)
    place = folder.parent / wanted.id
    if (place / experiment.FILE).exists():
        wanted = experiment.load(place)  # it was interrupted
    print(f"evmperf: checking again against {sides.since}, into {place}", file=sys.stderr)
    with experiment.held(place), Holding(wanted.id, options.wait) as holding:
        holding.have(wanted.board)
        comparison = ab.go_on(place, wanted, Sessions(place))
    report.write(place, comparison, ())
    return confirm.settled(judgement, comparison, sides.since)
