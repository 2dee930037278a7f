"""`evmperf ab`: which of two variations of a board is better, measured in turn."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live

from evmperf.boards import variation
from evmperf.cli.arguments import command, tell
from evmperf.cli.terminal import note, own, width
from evmperf.keeping.claim import Holding
from evmperf.measure import boardfile
from evmperf.model.change import Comparison
from evmperf.model.errors import UsageError
from evmperf.provision.record import with_images
from evmperf.regress import ab, experiment
from evmperf.regress.experiment import Experiment
from evmperf.regress.rounds import Sessions
from evmperf.report import ab as report
from evmperf.runs import differences
from evmperf.runs.differences import Difference
from evmperf.runs.spool import new_run_id

_BLOCKS = 20
"""Most blocks, where nobody says otherwise."""


@command("ab")
def _ab(options: argparse.Namespace) -> int:
    if options.resume:
        folder = options.resume
        wanted = Experiment.load(folder)
        wanted.budget_s = options.budget or wanted.budget_s
        wanted.blocks = options.rounds or wanted.blocks
    else:
        wanted = _asked(options)
        folder = options.results / wanted.id
    sessions = Sessions(folder)
    with experiment.held(folder), Holding(wanted.id, options.wait) as holding:
        holding.have(wanted.board)
        if options.resume:
            sessions.wait_for_others()
        shower = _Shower(folder, options, wanted)
        try:
            with shower:
                comparison = ab.go_on(folder, wanted, sessions, shower.show)
        except BaseException:
            tell(f"to go on: evmperf ab --resume {folder}")
            raise
    differences = _differences(folder, wanted)
    shower.finish(comparison, differences)
    return ab.exit_status(comparison)


def _asked(options: argparse.Namespace) -> Experiment:
    if not options.board:
        raise UsageError("evmperf ab needs a board file, or --resume FOLDER")
    loaded = boardfile.named(options.board)
    sides = {"a": variation.parse(options.a), "b": variation.parse(options.b)}
    if sides["a"].words == sides["b"].words:
        raise UsageError(f"both sides are {sides['a']}: give them different --a and --b")
    blocks = _BLOCKS if options.rounds is None else options.rounds
    if blocks < 1:
        raise UsageError(f"--rounds {blocks}: must be at least 1")
    a, b = with_images([side.words for side in sides.values()], loaded)
    return Experiment(
        id=f"ab-{new_run_id(loaded.name)}",
        boards=[options.board],
        sides={"a": a, "b": b},
        seed=os.urandom(8).hex(),
        blocks=blocks,
        budget_s=options.budget,
        metrics=options.metric,
        **{name: getattr(options, name) for name in ("select", "profile", "boots", "within")},
    )


def _differences(folder: Path, wanted: Experiment) -> list[Difference]:
    pairs = wanted.pairs()
    if not pairs:
        return []
    a, b = zip(*pairs, strict=True)
    return differences.between([folder / one.run for one in a], [folder / one.run for one in b])


class _Shower:
    """Shows an A/B: on a terminal a live table, elsewhere a line a block; writes the folder's files."""

    def __init__(self, folder: Path, options: argparse.Namespace, wanted: Experiment) -> None:
        self._folder = folder
        self._options = options
        self._wanted = wanted
        # A live table moves the cursor; what others said in it is made text by who fills it.
        self._console = Console(file=own(sys.stderr))
        self._live = Live(console=self._console, auto_refresh=False)

    def __enter__(self) -> _Shower:
        self._console.print(f"evmperf: measuring into {self._folder}", highlight=False)
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, comparison: Comparison) -> None:
        report.write(self._folder, comparison, ())
        minutes = f"{comparison.spent_s / 60:.0f} min"
        line = f"{comparison.sentence()} ({minutes}, {len(comparison.open)} still open)"
        if plan := comparison.plan(self._wanted.blocks, self._wanted.budget_s):
            line += f"; {plan}"
        if self._console.is_terminal:
            self._live.update(Group(report.table(comparison), line), refresh=True)
        else:
            note(line)

    def finish(self, comparison: Comparison, differences: Sequence[Difference]) -> None:
        report.write(self._folder, comparison, differences)
        if self._options.json:
            print(report.as_json(comparison, differences), end="")
        elif self._options.markdown:
            print(report.as_markdown(comparison, differences), end="")
        else:
            shown = report.text(comparison, differences, everything=self._options.all, width=width(140))
            print(f"{shown}Report: {self._folder}/ab.html")
        if comparison.open:
            more = "--budget" if "budget" in comparison.ended else "--rounds"
            open_now = f"{len(comparison.open)} not decided; to go on, with more {more}"
            tell(f"{open_now}: evmperf ab --resume {self._folder}")
