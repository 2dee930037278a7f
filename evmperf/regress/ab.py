"""An A/B: two variations of one board, measured in turn until what is asked for is known."""

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from evmperf.boards import variation
from evmperf.model import anytime
from evmperf.model.change import Change, Comparison, Decision, Quantity
from evmperf.model.errors import BoardError, LabError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.model.results import Direction, Metric
from evmperf.model.units import Unit
from evmperf.published import declared
from evmperf.regress import experiment as state
from evmperf.regress import paired
from evmperf.regress.experiment import Experiment, Round
from evmperf.regress.paired import PairedBlock
from evmperf.regress.sessions import Session, WantedSession
from evmperf.runs import spool

_FRUITLESS = 3
"""Blocks in a row without both sides after which an A/B gives up."""

INTERRUPTED = "interrupted"

Show = Callable[[Comparison], None]


class BlockMeasurer(Protocol):
    """Something that measures one round (`evmperf.regress.sessions.Sessions`)."""

    def measure(self, wanted: WantedSession) -> Session:
        """Measure; raises UsageError for what cannot be."""

    def last_words(self) -> str:
        """What was said last."""


def go_on(
    folder: Path, experiment: Experiment, sessions: BlockMeasurer, show: Show = lambda _: None
) -> Comparison:
    """Measure block after block until all is decided, or the blocks or the budget are spent.

    The state is on the disk after each round, so that a later call goes on after whatever ended
    this one. Raises LabError when the lab is broken, BoardError when a side cannot be measured,
    KeyboardInterrupt as it comes.
    """
    experiment.leave_out_halves(INTERRUPTED)
    experiment.ended = ""
    fruitless = 0
    while not (ended := _ended(folder, experiment)):
        block = experiment.next_block
        known = len(experiment.pairs())
        for side in experiment.order(block, (state.A, state.B)):
            _measure(folder, experiment, sessions, block, side)
        experiment.leave_out_halves("the other side of its block was not measured")
        experiment.save(folder)
        fruitless = fruitless + 1 if len(experiment.pairs()) == known else 0
        if fruitless == _FRUITLESS:
            raise BoardError(
                f"{_FRUITLESS} blocks in a row were not measured on both sides "
                f"({_sides_that_failed(experiment)}): {sessions.last_words()}"
            )
        show(compared(folder, experiment))
    experiment.ended = ended
    experiment.save(folder)
    return compared(folder, experiment)


def _measure(folder: Path, experiment: Experiment, sessions: BlockMeasurer, block: int, side: str) -> None:
    entry = Round(block, side, left_out=INTERRUPTED)
    experiment.rounds.append(entry)
    experiment.save(folder)
    session = sessions.measure(
        WantedSession(
            experiment.board,
            experiment.sides[side],
            experiment.select,
            experiment.profile,
            facts=(f"ab={experiment.id} block {block} side {side}",),
            boots=experiment.boots,
            leave_out=[*experiment.leave_out, *_decided_cases(compared(folder, experiment))],
        )
    )
    entry.run, entry.status, entry.seconds = session.run, session.status, session.seconds
    entry.left_out = _why_not(folder, session)
    experiment.save(folder)
    if session.status in (ExitStatus.LAB_BROKEN, ExitStatus.INTERNAL):
        raise LabError(sessions.last_words())
    if session.status == ExitStatus.INTERRUPTED:
        raise KeyboardInterrupt


def _why_not(folder: Path, session: Session) -> str:
    if session.status == ExitStatus.INTERRUPTED:
        return INTERRUPTED
    if session.status == ExitStatus.LAB_BROKEN:
        return "the lab was broken"
    if not session.run or not spool.read_results(folder / session.run):
        return "nothing was measured"
    return ""


def _sides_that_failed(experiment: Experiment) -> str:
    last = experiment.rounds[-2 * _FRUITLESS :]
    counts = {
        side: sum(entry.side == side and bool(entry.status) for entry in last) for side in experiment.sides
    }
    return ", ".join(f"{side.upper()} failed {count} times" for side, count in counts.items())


def compared(folder: Path, experiment: Experiment) -> Comparison:
    """What the blocks say so far."""
    quantities: dict[Key, Quantity] = {}
    waiting: dict[Key, None] = {}
    blocks = []
    for _, first, second in experiment.pairs():
        values = []
        for entry in (first, second):
            found = figures(spool.read_results(folder / entry.run))
            for key, figure in found.items():
                metric = declared.metric(key)
                better = metric.better if metric else Direction.NONE
                quantities.setdefault(key, Quantity(figure.unit, better))
                if _decides(experiment, key, metric):
                    waiting[key] = None
            values.append({key: figure.centre for key, figure in found.items()})
        blocks.append(PairedBlock(*values))
    changes = paired.compare(blocks, quantities, within=experiment.within)
    return Comparison(
        id=experiment.id,
        board=Path(experiment.board).stem,
        a=str(variation.parse(experiment.sides[state.A])),
        b=str(variation.parse(experiment.sides[state.B])),
        blocks=len(blocks),
        spent_s=experiment.spent_s,
        changes=changes,
        waiting=tuple(waiting),
        ended=experiment.ended,
        alpha=anytime.ALPHA,
        notes=_notes(experiment.rounds),
    )


def _notes(rounds: Iterable[Round]) -> tuple[str, ...]:
    return tuple(
        f"block {entry.block + 1}, side {entry.side.upper()}: left out, {entry.left_out}"
        for entry in rounds
        if entry.left_out
    )


def _decides(experiment: Experiment, key: Key, metric: Metric | None) -> bool:
    """Whether an A/B goes on until this metric is decided: those that were asked for, else all that
    every run must have but loads, which scatter too much to wait for.
    """
    if experiment.metrics:
        return matches(key, experiment.metrics)
    return bool(
        metric and metric.required and metric.unit != Unit.PERCENT and metric.better is not Direction.NONE
    )


def matches(key: Key, patterns: Sequence[str]) -> bool:
    """Whether a metric is one of `benchmark/case/metric`, in which `*` stands for anything."""
    return any(fnmatch.fnmatchcase("/".join(key), pattern) for pattern in patterns)


def _ended(folder: Path, experiment: Experiment) -> str:
    """Why there is no further block, "" if there is one."""
    comparison = compared(folder, experiment)
    if comparison.changes and comparison.waiting and not comparison.open:
        return "all requested metrics are decided"
    if experiment.next_block >= experiment.blocks:
        return f"{experiment.blocks} blocks are measured"
    blocks = max(1, experiment.next_block)
    if experiment.budget_s and experiment.spent_s * (1 + 1 / blocks) > experiment.budget_s:
        return f"the budget of {experiment.budget_s / 60:.0f} min is spent"
    return ""


def _decided_cases(comparison: Comparison) -> list[str]:
    """Cases of which everything that is waited for is decided: no use to measure them on."""
    by_case: dict[str, list[Change]] = {}
    for change in comparison.changes:
        by_case.setdefault(f"{change.key.benchmark}/{change.key.case}", []).append(change)
    wanted = set(comparison.waiting)
    done = []
    for case, changes in by_case.items():
        mine = [change for change in changes if change.key in wanted]
        # What nobody waits for is measured along as long as anything else is.
        if mine and all(change.decision is not Decision.UNKNOWN for change in mine):
            done.append(case)
    return done


def exit_status(comparison: Comparison) -> ExitStatus:
    """As `evmperf check` ends: something worse, all decided and nothing worse, something that is
    waited for not decided, or nothing comparable.
    """
    if not comparison.changes:
        return ExitStatus.NOTHING
    ends = {"bad": ExitStatus.FAILED, "unsure": ExitStatus.UNDECIDED, "good": ExitStatus.OK}
    return ends[comparison.state]
