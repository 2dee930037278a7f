"""`evmperf ab` and `bisect`: sides of a board measured in turn."""

import argparse
import contextlib
import sys
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live

from evmperf.commands.app import experiments
from evmperf.commands.app.experiments import Bisect, MeasureSides
from evmperf.commands.cli.arguments import (
    RESULTS,
    WAIT,
    argument,
    command,
    count,
    duration,
    filled,
    share,
    tell,
)
from evmperf.commands.cli.terminal import note, own, width
from evmperf.judge import ab
from evmperf.judge.search import StepAnswer
from evmperf.model.change import Comparison
from evmperf.model.errors import EvmperfError
from evmperf.publish.report import ab as report

_SKIP, _STOP = 125, 128
"""What a step says to git: it cannot tell, and no further step."""


_ROUND = (
    argument("--profile", default="", choices=["full", "quick"]),
    argument(
        "--boots",
        type=count,
        default=0,
        metavar="N",
        help="cold boots of a round of boot times (default: the profile's)",
    ),
    WAIT,
)


@command(
    "ab",
    argument("board", nargs="?", default="", help="a board file, as for pytest --lg-env"),
    argument("--a", action="append", default=[], metavar="WHAT", help="side A (repeatable)"),
    argument("--b", action="append", default=[], metavar="WHAT", help="side B (repeatable)"),
    argument("--rounds", type=int, metavar="N", help="most blocks to measure (default: 20)"),
    argument("--budget", type=duration, default=0.0, metavar="TIME", help="most time: 90m, 2h"),
    argument(
        "--within",
        type=share,
        default=0.02,
        metavar="SHARE",
        help="a change of at most this counts as the same (default: 2%%)",
    ),
    argument(
        "--metric",
        action="append",
        default=[],
        metavar="BENCHMARK/CASE/METRIC",
        help="go on until these are decided (* stands for anything; default: all but loads)",
    ),
    argument("-k", default="", dest="select", help="what to measure (as for pytest)"),
    *_ROUND,
    argument("--resume", type=Path, metavar="FOLDER", help="go on with an A/B, or look at it again"),
    RESULTS,
    argument("--all", action="store_true", help="show every metric"),
    argument("--json", action="store_true", help="print ab.json at the end"),
    argument("--markdown", action="store_true", help="print ab.md at the end"),
    epilog="""A side is the board with these changes (one side may have several):
      as-is                 nothing changed (the default of both sides)
      args:TEXT             words that join the kernel's command line
      uboot:NAME=VALUE      a U-Boot variable, set before each boot and never saved
      run:COMMAND           shell text, run in Linux after each boot, before anything is measured
      image:FILE            an image or release, put on the board by provisioning
      kernel:FILE dtb:FILE  a kernel, a device tree alone
      FILE.yaml             a list of such words

      evmperf ab virtual.yaml --b args:mitigations=off -k "boot_time or emmc_raw" --rounds 12
      evmperf ab am64x.yaml --a image:11.01 --b image:12.00 -k emmc --budget 2h
      evmperf ab --resume results/ab-...      goes on after Ctrl-C, kill -9, or a broken lab

    Each round is an ordinary run on a cold boot; the two rounds of a block are in random order. Exit
    status: 0 all requested metrics are decided, none is worse; 1 a metric is worse, 3 the lab is
    broken, 5 nothing comparable, 6 not decided.
    """,
)
def _ab(options: argparse.Namespace) -> int:
    """Measure two variations of one board in turn, and judge each metric: B is better, worse or the same.
    The false-alarm rate stays at 5 % although the result is checked after each block (docs/ab.md).
    """
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

        folder, comparison, changed = experiments.ab(filled(MeasureSides, options), tell, show)
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
    return ab.exit_status(comparison)


@command(
    "bisect",
    argument("board", nargs="?", default="", help="a board file, as for pytest --lg-env"),
    argument("--of", default="", metavar="LIST|git:GOOD..BAD", help="a file of versions, or commits"),
    argument(
        "--what",
        action="append",
        default=[],
        metavar="WHAT",
        help="a side of `evmperf ab` with {} for the version",
    ),
    argument("--metric", default="", metavar="BENCHMARK/CASE/METRIC", help="the metric that became worse"),
    argument("--build", default="", metavar="COMMAND", help="builds a version"),
    argument("--repository", type=Path, default=".", metavar="DIR", help="git's checkout (default: .)"),
    argument(
        "--good",
        action="append",
        default=[],
        metavar="WHAT",
        help="the good version (default: the first of the list)",
    ),
    argument(
        "--bad",
        action="append",
        default=[],
        metavar="WHAT",
        help="the bad version (default: the last of the list)",
    ),
    argument(
        "--spare",
        action="append",
        default=[],
        metavar="BOARD",
        help="another board of the kind, if the first one fails",
    ),
    argument("--rounds", type=int, default=60, metavar="N", help="most blocks for one answer (default: 60)"),
    argument("-k", default="", dest="select", help="what to measure (default: the case)"),
    *_ROUND,
    argument("--resume", type=Path, metavar="FOLDER", help="go on with a bisection"),
    argument(
        "--step",
        nargs="+",
        metavar=("FOLDER", "VERSION"),
        help="one step of that bisection, for git: is VERSION good? (default: the commit checked out here)",
    ),
    RESULTS,
    epilog=r"""A list of versions, the first good, the last bad; {} in --what stands for each:
      evmperf bisect am64x.yaml --of releases.txt --what image:{} \
        --metric emmc_raw_fio_1g/4m/write_throughput

    Commits, by `git bisect run`. --build makes the image of --what in a checkout of $VERSION; its
    name must contain the version, as good and bad are measured again beside each candidate:
      evmperf bisect am64x.yaml --of git:v1.2..main --build 'make image O=/tmp/$VERSION' \
        --what image:/tmp/{}/image.wic --metric boot_time_mmcsd/default_rootfs/boot_time

    Both go on after Ctrl-C, kill -9 or a broken lab with `evmperf bisect --resume FOLDER`. Exit status:
    0 the change was found, 1 it was not, 3 the lab is broken, 5 good and bad do not differ. With --step,
    for git: 0 like the good version, 1 like the bad one, 125 cannot tell (does not build, does not boot,
    neither like good nor like bad), 128 the lab is broken or the difference is too small: git stops.
    """,
)
def _bisect(options: argparse.Namespace) -> int:
    """Find the change that made a metric worse, by measuring versions between a good and a bad one; good
    and bad are measured again beside each (docs/ab.md).
    """
    if options.step:
        return _step(*options.step)
    status, lines = experiments.bisect(filled(Bisect, options), tell)
    print("".join(f"{line}\n" for line in lines), end="")
    return status


def _step(folder: str, version: str = "") -> int:
    """Tell `git bisect run` whether a version is like the good one."""
    try:
        step, stuck = experiments.bisect_step(Path(folder), version, tell)
    except EvmperfError as error:
        tell(str(error))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # git takes 1 for "bad"
        tell(f"{type(error).__name__}: {error}")
    else:
        if not stuck:
            return {StepAnswer.GOOD: 0, StepAnswer.BAD: 1}.get(step.answer, _SKIP)
    return _STOP
