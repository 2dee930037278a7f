"""`evmperf ab`: two sides of a board measured in turn."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from evmperf.boards import variation
from evmperf.commands.app.again import in_turn
from evmperf.commands.cli.arguments import RESULTS, WAIT, argument, command, count, duration, share, tell
from evmperf.commands.cli.terminal import note, own, width
from evmperf.judge import paired
from evmperf.judge.experiment import Experiment
from evmperf.measure import boardfile
from evmperf.measure.runs import differences
from evmperf.measure.runs.differences import Difference
from evmperf.measure.runs.spool import new_run_id
from evmperf.model import anytime
from evmperf.model.change import Comparison
from evmperf.model.errors import EvmperfError, Kind, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.report import ab as report

_BLOCKS = 20
"""Most blocks of an A/B, where nobody says otherwise."""


@command(
    "ab",
    argument("board", nargs="?", default="", help="a board file, as for pytest --lg-env"),
    argument("--a", action="append", default=[], metavar="WHAT", help="side A (repeatable)"),
    argument("--b", action="append", default=[], metavar="WHAT", help="side B (repeatable)"),
    argument("--rounds", type=int, metavar="N", help=f"most blocks to measure (default: {_BLOCKS})"),
    argument("--budget", type=duration, default=0.0, metavar="TIME", help="most time: 90m, 2h"),
    argument(
        "--within",
        type=share,
        default=paired.WITHIN,
        metavar="SHARE",
        help=f"a change of at most this counts as the same (default: {paired.WITHIN:.0%}%)",
    ),
    argument(
        "--metric",
        action="append",
        default=[],
        metavar="BENCHMARK/CASE/METRIC",
        help="go on until these are decided (* stands for anything; default: all but loads)",
    ),
    argument("-k", default="", dest="select", help="what to measure (as for pytest)"),
    argument("--profile", default="", choices=["full", "quick"]),
    argument(
        "--boots",
        type=count,
        default=0,
        metavar="N",
        help="cold boots of a round of boot times (default: the profile's)",
    ),
    WAIT,
    argument("--resume", type=Path, metavar="FOLDER", help="go on with an A/B, or look at it again"),
    RESULTS,
    argument("--all", action="store_true", help="show every metric"),
    argument(
        "--git-bisect",
        action="store_true",
        help="end as `git bisect run` wants: 0 B is not worse, 1 it is, 125 not known, 128 stop",
    ),
    argument("--json", action="store_true", help="print ab.json at the end"),
    argument("--markdown", action="store_true", help="print ab.md at the end"),
    epilog="""A side is the board with these changes (one side may have several):
      as-is                 nothing changed (the default of both sides)
      args:TEXT             words that join the kernel's command line
      uboot:NAME=VALUE      a U-Boot variable, set before each boot and never saved
      run:COMMAND           shell text, run in Linux after each boot, before anything is measured
      image:FILE            an image, put on the board by provisioning
      FILE.yaml             a list of such words

      evmperf ab virtual.yaml --b args:mitigations=off -k "boot_time or emmc_raw" --rounds 12
      evmperf ab am64x.yaml --a image:11.01.wic.xz --b image:12.00.wic.xz -k emmc --budget 2h
      evmperf ab --resume results/ab-...      goes on after Ctrl-C, kill -9, or a broken lab

    Each round is an ordinary run on a cold boot; the two rounds of a block are in random order. Exit
    status: 0 all requested metrics are decided, none is worse; 1 a metric is worse, 3 the lab is
    broken, 5 nothing comparable, 6 not decided.
    """,
)
def _command(options: argparse.Namespace) -> int:
    """Measure two variations of one board in turn, and judge each metric: B is better, worse or the same.
    The false-alarm rate stays at 5 % although the result is checked after each block (docs/ab.md).
    """
    if not options.git_bisect:
        return _ab(options)
    try:
        return _OF_GIT.get(_ab(options), _STOP)
    except EvmperfError as error:
        tell(str(error))
        return _SKIP if error.kind is Kind.BOARD else _STOP


_SKIP, _STOP = 125, 128
"""What git bisect run skips, and what ends it."""
_OF_GIT: Mapping[int, int] = {
    ExitStatus.OK: 0,
    ExitStatus.FAILED: 1,
    ExitStatus.NOTHING: _SKIP,
    ExitStatus.UNDECIDED: _SKIP,
}


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
                live.update(Group(report.table(comparison), Text(line)), refresh=True)
            else:
                note(line)

        folder, comparison, changed = _measured(options, show)
    if options.json:
        print(report.as_json(comparison, changed), end="")
    elif options.markdown:
        print(report.as_markdown(comparison, changed), end="")
    else:
        shown = report.text(comparison, changed, everything=options.all, width=width(140))
        print(f"{shown}Report: {folder}/ab.html")
    if comparison.open:
        more = "--budget" if "budget" in comparison.ended else "--rounds"
        open_now = f"{len(comparison.open)} not decided; to go on, with more {more}"
        tell(f"{open_now}: evmperf ab --resume {folder}")
    return comparison.exit_status


def _measured(
    options: argparse.Namespace, show: Callable[[Comparison, str], None]
) -> tuple[Path, Comparison, Sequence[Difference]]:
    """Measure an A/B; its folder, its state, and what differs between its sides. `show` gets its state after
    each block, and what it still takes in words.
    """
    if options.resume:
        folder = options.resume
        plan = Experiment.load(folder)
        plan.budget_s = options.budget or plan.budget_s
        plan.blocks = options.rounds or plan.blocks
    else:
        plan = _plan(options)
        folder = options.results / plan.id

    def shown(comparison: Comparison) -> None:
        report.write(folder, comparison, ())
        show(comparison, comparison.plan(plan.blocks, plan.budget_s))

    comparison = in_turn(folder, plan, options.wait, tell, shown)
    a, b = ([folder / pair[side].run for pair in plan.pairs()] for side in (0, 1))
    changed = differences.between(a, b) if a else []
    report.write(folder, comparison, changed)
    return folder, comparison, changed


def _plan(options: argparse.Namespace) -> Experiment:
    if not options.board:
        raise UsageError("evmperf ab needs a board file, or --resume FOLDER")
    board = boardfile.named(options.board)
    named = [variation.parse(words) for words in (options.a, options.b)]
    if named[0].words == named[1].words:
        raise UsageError(f"both sides are {named[0]}: give them different --a and --b")
    blocks = _BLOCKS if options.rounds is None else options.rounds
    if blocks < anytime.FEWEST:
        raise UsageError(f"--rounds {blocks}: fewer than {anytime.FEWEST} blocks decide nothing")
    if bool(named[0].image) != bool(named[1].image):
        raise UsageError("one side has no image and would run the other's: write image:FILE for each side")
    return Experiment(
        id=f"ab-{new_run_id(board.name)}",
        boards=[options.board],
        sides={"a": list(named[0].words), "b": list(named[1].words)},
        seed=os.urandom(8).hex(),
        blocks=blocks,
        budget_s=options.budget,
        metrics=list(options.metric),
        **{name: getattr(options, name) for name in ("select", "profile", "boots", "within")},
    )
