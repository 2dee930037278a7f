"""An A/B: two variations of one board, measured in turn until what is asked for is known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from evmperf.boards import variation
from evmperf.judge import judge, paired
from evmperf.judge.experiment import Experiment
from evmperf.judge.published import declared
from evmperf.judge.rounds import Sessions, matches, measure_block
from evmperf.measure.runs import spool
from evmperf.model.change import Comparison, Quantity
from evmperf.model.figures import Key, figures
from evmperf.model.results import Direction
from evmperf.model.units import Unit

Show = Callable[[Comparison], None]


def go_on(
    folder: Path, experiment: Experiment, sessions: Sessions, show: Show = lambda _: None
) -> Comparison:
    """Measure block after block until all is decided, or the blocks or the budget are spent; raises as
    `measure_block` does.
    """
    experiment.resume()
    comparison = compared(folder, experiment)
    while not (ended := _ended(experiment, comparison)):
        leave_out = _decided_cases(comparison)
        measure_block(folder, experiment, sessions.round, leave_out)
        comparison = compared(folder, experiment)
        show(comparison)
    experiment.ended = ended
    experiment.save(folder)
    return replace(comparison, ended=ended)


def compared(folder: Path, experiment: Experiment) -> Comparison:
    """What the blocks say so far."""
    quantities: dict[Key, Quantity] = {}
    blocks = []
    for pair in experiment.pairs():
        sides = [figures(spool.read_results(folder / entry.run)) for entry in pair]
        for key, figure in (*sides[0].items(), *sides[1].items()):
            quantities.setdefault(key, Quantity(figure.unit, judge.better(key)))
        means = [{key: figure.mean for key, figure in side.items()} for side in sides]
        blocks.append((means[0], means[1]))
    a, b = (str(variation.parse(words)) for words in experiment.sides.values())
    return Comparison(
        id=experiment.id,
        board=Path(experiment.board).stem,
        a=a,
        b=b,
        blocks=len(blocks),
        spent_s=experiment.spent_s,
        changes=paired.compare(blocks, quantities, within=experiment.within),
        waiting=tuple(key for key in quantities if _decides(experiment, key)),
        ended=experiment.ended,
        notes=tuple(
            f"block {entry.block + 1}, side {entry.side.upper()}: left out, {entry.left_out}"
            for entry in experiment.rounds
            if entry.left_out
        ),
    )


def _decides(experiment: Experiment, key: Key) -> bool:
    """Whether an A/B goes on until this metric is decided: those that were asked for, else all that
    every run must have but loads, which scatter too much to wait for.
    """
    if experiment.metrics:
        return matches(key, experiment.metrics)
    metric = declared.metric(key)
    is_required = metric and metric.required and metric.better is not Direction.NONE
    return bool(is_required and metric and metric.unit != Unit.PERCENT)


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


def _decided_cases(comparison: Comparison) -> set[str]:
    """The cases that are measured no more, as BENCHMARK/CASE: each metric that was asked for is decided. A
    case without such a metric is measured to the end.
    """
    waiting = set(comparison.waiting)
    asked = {f"{key.benchmark}/{key.case}" for change in comparison.changes if (key := change.key) in waiting}
    return asked - {f"{change.key.benchmark}/{change.key.case}" for change in comparison.open}
