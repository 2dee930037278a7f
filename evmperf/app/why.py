"""Why a figure is lower than the published one: what was read, and what would prove it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from evmperf.app.requests import Answer, Cause, Explained, Hear, Why
from evmperf.benchmarks import catalogue
from evmperf.model import comparable
from evmperf.model.errors import UsageError
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.results import Direction, Result
from evmperf.model.run import Run
from evmperf.model.state import State
from evmperf.published import baseline, identity, releases, source
from evmperf.runs.history import in_folder
from evmperf.state import buses, rules

_BESIDE = 0.05
"""Relative difference to the published figure below which nothing needs a cause."""
_FULL = 0.9
"""Share of the bus above which the bus itself is what limits."""
_BUSY = 0.95
"""Part of all CPUs' time above which they are what limits."""
_STOLEN = 0.05
"""Part of the CPUs' time that the host of a virtual board may take."""

_POLICIES = "for p in /sys/devices/system/cpu/cpufreq/policy*; do "
_AB = "evmperf ab BOARD.yaml -k {benchmark} --b 'run:"
_PROOFS = {
    "limited": f"{_AB}{_POLICIES}cat $p/cpuinfo_max_freq >$p/scaling_max_freq; done'",
    "governor": f"{_AB}{_POLICIES}echo performance >$p/scaling_governor; done'",
    "alike": "evmperf explain {run} ANOTHER_RUN",
    "mode": "the kernel's messages and the device tree say why the better mode is not taken",
}
"""What proves a cause; for the others the case is measured again without it."""
_AGAIN = "pytest --lg-env BOARD.yaml -k {benchmark}"


def explain(request: Why, hear: Hear = lambda reply: None) -> Explained:
    """Why the figures of a run are worse than the published ones, or what is known of one case.

    Raises UsageError for a case that the run does not have.
    """
    entry = in_folder(Path(request.folder))
    run, results = entry.run, entry.results()
    chosen = [r for r in results if request.case in f"{r.benchmark} {r.case}"]
    if not chosen:
        known = ", ".join(sorted({result.benchmark for result in results})) or "none"
        raise UsageError(f"{run.id} has no case {request.case!r}; it has: {known}")
    published = baseline.of_board(run)
    guides = source.guides(identity.board(run.board), run.os) if published else []
    history = {guide.run.release: figures(guide.results()) for guide in guides}
    shared = {(result.benchmark, result.profile): result.state for result in results if result.state}
    answers: list[Answer] = []
    for result in chosen:
        # Rows of one execution: the first has the state.
        state = result.state or shared.get((result.benchmark, result.profile))
        answers += _answers(run, result, state, published, history, asked=bool(request.case))
    return Explained(run=run.id, board=run.board, answers=tuple(answers))


def _answers(
    run: Run,
    result: Result,
    state: State | None,
    published: Baseline | None,
    history: Mapping[str, Mapping[Key, Figure]],
    *,
    asked: bool,
) -> Iterator[Answer]:
    better = _directions(result)
    for key, figure in figures([result]).items():
        other = published.figures.get(key) if published else None
        other = other if other and other.unit == figure.unit else None
        if not asked and not (other and _worse(figure, other, better.get(key.metric))):
            continue
        yield Answer(
            benchmark=result.benchmark,
            case=result.case,
            metric=key.metric,
            unit=figure.unit,
            ours=figure.mean,
            theirs=other.mean if other else None,
            release=published.published.release if published and other else "",
            history=tuple(
                (release, there[key].mean)
                for release, there in history.items()
                if key in there and there[key].unit == figure.unit
            ),
            share=state.shares.get(key.metric) if state else None,
            bus=state.bus if state else "",
            looked=bool(state and state.shown),
            causes=tuple(_causes(run, result, state, published, other)),
        )


def _directions(result: Result) -> dict[str, Direction]:
    benchmark = catalogue.benchmarks().get(result.benchmark)
    if benchmark is None:
        return {}
    rows = [case for case in benchmark.cases(result.profile) if case.label == result.case]
    metrics = benchmark.metrics_of(rows[0]) if rows else benchmark.metrics
    return {metric.name: metric.better for metric in metrics}


def _worse(figure: Figure, other: Figure, better: Direction | None) -> bool:
    if better is Direction.HIGHER:
        return figure.mean < other.mean * (1 - _BESIDE)
    return better is Direction.LOWER and figure.mean > other.mean * (1 + _BESIDE)


def _causes(
    run: Run, result: Result, state: State | None, published: Baseline | None, other: Figure | None
) -> Iterator[Cause]:
    """What was read and would explain a difference, with what it explains at most first."""
    found: list[tuple[str, str, float]] = []
    if published and other:
        ours = comparable.of_result(run, result)
        differs = comparable.difference(ours, comparable.of_result(published.published, other.result))
        found += [("alike", f"not measured alike: {differs}", 0.0)] if differs else []
    if state:
        ours_too = tuple(name.removeprefix("tester ") for name in result.tools)
        judged = [*rules.judge(state, ours_too)]
        if not releases.is_virtual(run):
            judged += buses.findings(result)
        found += [(finding.rule, finding.reason, finding.size) for finding in judged]
        found += _read(state)
    for rule, evidence, size in sorted(found, key=lambda cause: -cause[2]):
        proof = _PROOFS.get(rule, _AGAIN).format(benchmark=result.benchmark, run=run.id)
        yield Cause(rule=rule, evidence=evidence, size=size or None, proof=proof)


def _read(state: State) -> Iterator[tuple[str, str, float]]:
    """Causes that spoil nothing: they are how the board is set up, or what the hardware can do."""
    for metric, share in state.shares.items():
        if share > _FULL:
            yield "bus", f"{metric} is {share:.0%} of what {state.bus} can carry", 0.0
    ticks = {name: n for name, n in state.counted.items() if name.startswith("cpu_")}
    total = sum(ticks.values())
    if total and 1 - (ticks.get("cpu_idle", 0) + ticks.get("cpu_iowait", 0)) / total > _BUSY:
        yield "processor", "all CPUs were busy during the case", 0.0
    if total and ticks.get("cpu_steal", 0) / total > _STOLEN:
        part = ticks["cpu_steal"] / total
        yield "host", f"the virtual board's host took {part:.0%} of its CPUs", 1 / (1 - part)
    for name, governor in state.shown.items():
        policy = name.removesuffix(".scaling_governor")
        if policy != name and governor != "performance" and (speed := _slowed(state, policy)) > 1:
            reason = f"{policy} ran {speed:.2f} times slower than it can, by governor {governor}"
            yield "governor", reason, speed


def _slowed(state: State, policy: str) -> float:
    """How many times slower the clock was in the mean than at most; 1 where that is not known."""
    prefix = f"{policy}.time_in_state."
    spent = {
        int(name.removeprefix(prefix)): ticks
        for name, ticks in state.counted.items()
        if re.fullmatch(re.escape(prefix) + r"\d{1,9}", name)
    }
    most = state.shown.get(f"{policy}.cpuinfo_max_freq")
    done = sum(khz * ticks for khz, ticks in spent.items())
    return most * sum(spent.values()) / done if done and isinstance(most, int) else 1.0
