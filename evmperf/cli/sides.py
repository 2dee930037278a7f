"""Two runs, or two sides of several runs each, as arguments."""

import argparse
from pathlib import Path

from evmperf.cli.arguments import A_RUN, arg
from evmperf.model.errors import UsageError
from evmperf.published.releases import BASELINES
from evmperf.runs.history import run_folder

SIDES = (
    arg("a?=A", A_RUN),
    arg("b?=B", "the run to compare with A"),
    arg("--a=RUN", "runs of side A", dest="side_a", nargs="+", default=[]),
    arg("--b=RUN", "runs of side B", dest="side_b", nargs="+", default=[]),
)


def sides(options: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """The folders of the runs of SIDES; raises UsageError unless each side has one."""
    named = ((options.a, options.side_a), (options.b, options.side_b))
    a, b = (
        [run_folder(given, options.results, BASELINES) for given in filter(None, [one, *more])]
        for one, more in named
    )
    if not a or not b:
        raise UsageError("two sides are needed: A B, or --a RUN... --b RUN...")
    return a, b
