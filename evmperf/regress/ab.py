"""An A/B: two variations of one board, measured in turn until what is asked for is known."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from evmperf.boards import variation
from evmperf.model import anytime
from evmperf.model.change import Change, Comparison, Decision, Quantity
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.model.results import Direction, Metric
from evmperf.model.units import Unit
from evmperf.published import declared
from evmperf.regress import paired
from evmperf.regress.experiment import Experiment, Round
from evmperf.regress.rounds import Sessions, matches, measure_block, on_a_board
from evmperf.runs import spool

Show = Callable[[Comparison], None]


def go_on(
    folder: Path, experiment: Experiment, sessions: Sessions, show: Show = lambda _: None
) -> Comparison:
    """Measure block after block until all is decided, or the blocks or the budget are spent; raises as
    `measure_block` does.
    """
    experiment.resume()
    measure = on_a_board(sessions)
    comparison = compared(folder, experiment)
    while not (ended := _ended(experiment, comparison)):
        measure_block(experiment, measure, lambda now: now.save(folder), leave_out=_decided_cases(comparison))
        comparison = compared(folder, experiment)
        show(comparison)
    experiment.ended = ended
    experiment.save(folder)
    return replace(comparison, ended=ended)


def compared(folder: Path, experiment: Experiment) -> Comparison:
    """What the blocks say so far."""
    quantities: dict[Key, Quantity] = {}
    waiting: dict[Key, None] = {}
    blocks = []
    for pair in experiment.pairs():
        values = []
        for entry in pair:
            found = figures(spool.read_results(folder / entry.run))
            for key, figure in found.items():
                metric = declared.metric(key)
                better = metric.better if metric else Direction.NONE
                quantities.setdefault(key, Quantity(figure.unit, better))
                if _decides(experiment, key, metric):
                    waiting[key] = None
            values.append({key: figure.centre for key, figure in found.items()})
        blocks.append((values[0], values[1]))
    a, b = (str(variation.parse(experiment.sides[side])) for side in experiment.compared)
    return Comparison(
        id=experiment.id,
        board=Path(experiment.board).stem,
        a=a,
        b=b,
        blocks=len(blocks),
        spent_s=experiment.spent_s,
        changes=paired.compare(blocks, quantities, within=experiment.within),
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


def _ended(experiment: Experiment, comparison: Comparison) -> str:
    """Why there is no further block, "" if there is one."""
    if comparison.changes and comparison.waiting and not comparison.open:
        return "all requested metrics are decided"
    if experiment.next_block >= experiment.blocks:
        return f"{experiment.blocks} blocks are measured"
    blocks = max(1, experiment.next_block)
    if experiment.budget_s and experiment.spent_s * (1 + 1 / blocks) > experiment.budget_s:
        return f"the budget of {experiment.budget_s / 60:.0f} min is spent"
    return ""


def _decided_cases(comparison: Comparison) -> list[str]:
    """Cases of which everything that is waited for is decided: no use to measure them on. What nobody
    waits for is measured along as long as anything else is.
    """
    wanted = set(comparison.waiting)
    mine: dict[str, list[Change]] = {}
    for change in comparison.changes:
        if change.key in wanted:
            mine.setdefault(f"{change.key.benchmark}/{change.key.case}", []).append(change)
    return [
        case
        for case, changes in mine.items()
        if all(change.decision is not Decision.UNKNOWN for change in changes)
    ]


def exit_status(comparison: Comparison) -> ExitStatus:
    """As `evmperf check` ends: something worse, all decided and nothing worse, something that is
    waited for not decided, or nothing comparable.
    """
    if not comparison.changes:
        return ExitStatus.NOTHING
    ends = {"bad": ExitStatus.FAILED, "unsure": ExitStatus.UNDECIDED, "good": ExitStatus.OK}
    return ends[comparison.state]
