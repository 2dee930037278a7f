"""Why a figure is lower than the published one, or than in another run: what was read, and what
would prove it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from evmperf.benchmarks import catalogue, control, wording
from evmperf.explain import boots, compared, facts
from evmperf.explain.answers import Answer, weigh
from evmperf.judge.judge import better
from evmperf.judge.published import releases, source
from evmperf.measure.runs.history import StoredRun, in_folder
from evmperf.measure.runs.spool import results_in
from evmperf.measure.state import buses, rules
from evmperf.measure.state.finding import Finding
from evmperf.model import comparable, plugins
from evmperf.model.errors import UsageError
from evmperf.model.figures import Baseline, Figure, Key, figures
from evmperf.model.results import Direction, Result
from evmperf.model.run import Run
from evmperf.model.state import State

_BESIDE = 0.05
"""Relative difference to the published figure below which nothing needs a cause."""
_FULL = 0.9
"""Share of the bus above which the bus itself is what limits."""
_BUSY = 0.95
"""Part of all CPUs' time above which they are what limits."""
_GOVERNOR = (
    "evmperf ab BOARD.yaml -k {benchmark} --b 'run:for p in /sys/devices/system/cpu/cpufreq/policy*; do "
    "echo performance >$p/scaling_governor; done'"
)
_PROOFS = {
    "alike": "evmperf compare --facts {run} ANOTHER_RUN",
    "mode": "grep -iE 'mmc|usb|tuning|speed' RESULTS/{run}/facts/dmesg",
}
"""What proves a cause of buses and conditions: the kernel says why it took no better mode."""

_SAID_CLOCK = re.compile(r"ARM running at (\d+(?:\.\d+)?) ?([GM])Hz")
"""In TI's lists of evaluation modules."""

States = Mapping[tuple[str, ...], State]


@dataclass(frozen=True)
class _Other:
    """What the figures are held against; `states` are those of a run, see `_states`."""

    baseline: Baseline | None
    history: Mapping[str, Mapping[Key, Figure]]
    states: States = field(default_factory=dict)
    module: str = ""
    """What TI's list of evaluation modules says of the board."""
    is_run: bool = False
    loops: Mapping[str, float] = field(default_factory=dict)
    """By run: the mean time of its control loop (ms)."""

    def conditions(self, other: Figure) -> str:
        """All that is known of the other figure's conditions; "" for a run's, whose facts are known."""
        tools = f"measured with {', '.join(other.result.tools)}" if other.result.tools else ""
        return "" if self.is_run else "; ".join(filter(None, (self.module, tools)))

    def control(self, run: Run) -> float:
        """How many times longer the control loop of a run took than the other run's; 0 where unknown."""
        ours, theirs = self.loops.get(run.id), self.loops.get(self.name)
        return ours / theirs if ours and theirs else 0.0

    @property
    def name(self) -> str:
        """The release of a guide, or the run."""
        run = self.baseline.published if self.baseline else None
        return "" if run is None else run.id if self.is_run else run.release


@dataclass(frozen=True)
class Explained:
    """What is known of the figures that were asked for; `against` in words, "" if there was nothing."""

    run: str
    board: str
    answers: tuple[Answer, ...]
    against: str
    busy: str
    """What else the board or the lab's host did meanwhile, which says more than any cause."""


def explain(folder: Path, case: str = "", good: StoredRun | None = None, against: str = "") -> Explained:
    """Why the figures of a run, or those of the cases whose name holds `case`, are worse than those of the
    run `good` (`against` is its name), or the published ones. What is known of a case that was asked
    for is said anyway.

    Raises UsageError for a case that the run does not have, or a guide that has not this board.
    """
    run = in_folder(folder).run
    every = source.baselines(run)
    if not (every or case or good) and any(results_in(folder)):
        return Explained(run.id, run.board, (), "", run.facts.busy)
    results = [result for result in results_in(folder) if _is_named(result, case)]
    if not results:
        names = ", ".join(sorted({result.benchmark for result in results_in(folder)})) or "none"
        raise UsageError(f"{run.id} has no case {case!r}; it has: {names}")
    states = _states(results_in(folder))
    published = source.nearest(run, every)
    clocks = [m.description for m in releases.modules([run.board]) if _SAID_CLOCK.search(m.description)]
    history = {one.published.release: one.figures for one in every}
    other = _Other(published, history, module="".join(clocks))
    if good:
        well = Baseline(run, good.run, figures(good.results()))
        loops = {run.id: _loop(results_in(folder)), good.run.id: _loop(good.results())}
        other = _Other(
            well, other.history, _states(good.results()), is_run=good.folder is not None, loops=loops
        )
    answers: list[Answer] = []
    for result in results:
        figure_answers = _answers(run, result, _state(states, result), other, asked=bool(case))
        answers += (
            boots.answers_of(
                folder, result, list(figure_answers), run.facts.command_line, _same(good, result)
            )
            if result.driver == "boot"
            else figure_answers
        )
    than = against or (f"the published figures of {run.board}" if published else "")
    return Explained(run.id, run.board, tuple(answers), than, run.facts.busy)


def _same(good: StoredRun | None, result: Result) -> tuple[Path, Result] | None:
    """The folder of a good run and its result of the same case; None where there is none."""
    if good is None or good.folder is None:
        return None
    row = (result.benchmark, result.case)
    same = next((one for one in good.results() if (one.benchmark, one.case) == row), None)
    return (good.folder, same) if same else None


def _keys(result: Result) -> list[tuple[str, ...]]:
    """The row, and each raw output: rows of one execution share those, and one of them has its state."""
    return [(result.benchmark, result.case, result.profile), *((raw,) for raw in result.raw)]


def _states(results: Iterable[Result]) -> States:
    return {key: result.state for result in results if result.state for key in _keys(result)}


def _loop(results: Iterable[Result]) -> float:
    """The mean time of a session's control loop (ms), 0 without one."""
    times = [v for r in results if r.benchmark == control.NAME for v in r.values(control.LOOP.name)]
    return sum(times) / len(times) if times else 0.0


def _state(states: States, result: Result) -> State | None:
    return next((states[key] for key in _keys(result) if key in states), None)


def _is_named(result: Result, words: str) -> bool:
    named = (result.case, wording.case(result.benchmark, result.case))
    return any(words in f"{result.benchmark} {case}" for case in named)


def _answers(run: Run, result: Result, state: State | None, held: _Other, *, asked: bool) -> Iterator[Answer]:
    published, history = held.baseline, held.history
    looked = bool(state and state.shown)
    answer = Answer(benchmark=result.benchmark, case=result.case, looked=looked, causes=())
    if asked and not result.samples:
        said = tuple(dict.fromkeys(failure.message for failure in result.failures))
        yield structs.replace(answer, failed=said, causes=tuple(_causes(run, result, state, held)))
    for key, figure in figures([result]).items():
        other = published.figures.get(key) if published else None
        other = other if other and other.unit == figure.unit else None
        is_worse = not other or _worse(figure, other, better(key))
        if not asked and not (other and is_worse):
            continue
        sides = (figure, other if is_worse else None)
        named = tuple(_causes(run, result, state, held, sides))
        before = ((release, figures_then.get(key)) for release, figures_then in history.items())
        yield structs.replace(
            answer,
            metric=key.metric,
            unit=figure.unit,
            ours=figure.mean,
            theirs=other.mean if other else None,
            release=held.name if other else "",
            history=tuple((name, old.mean) for name, old in before if old and old.unit == figure.unit),
            share=state.shares.get(key.metric) if state else None,
            bus=state.bus if state else "",
            conditions=held.conditions(other) if other else "",
            causes=named if is_worse else (),
            read=() if is_worse else named,
            is_worse=is_worse,
        )


def _worse(figure: Figure, other: Figure, way: Direction) -> bool:
    if way is Direction.HIGHER:
        return figure.mean < other.mean * (1 - _BESIDE)
    return way is Direction.LOWER and figure.mean > other.mean * (1 + _BESIDE)


def _causes(
    run: Run,
    result: Result,
    state: State | None,
    held: _Other,
    sides: tuple[Figure | None, Figure | None] = (None, None),
) -> list[Finding]:
    """What was read and is able to explain a difference. What holds in the other run as well, as much,
    explains nothing.
    """
    findings: list[Finding] = []
    figure, other = sides
    if held.baseline and other:
        ours = comparable.of_result(run, result)
        differs = comparable.difference(ours, comparable.of_result(held.baseline.published, other.result))
        module = catalogue.benchmarks().get(result.benchmark)
        if differs and module and module.ti_tools and not set(module.ti_tools) & set(result.tools):
            differs += f"; with {', '.join(module.ti_tools)} it would be ({catalogue.TI_IMAGE})"
        findings += [Finding("alike", f"not measured alike: {differs}")] if differs else []
    if state:
        findings += _judged(state, result, run.board)
        if not run.facts.virtual:
            findings += [_priced(one, run.board, result, figure) for one in buses.findings(result, run.board)]
            findings += _above(state, figure, other) if figure and other else []
            findings += _slower_clock(state, held.module) if other else []
    if held.baseline and held.states:
        findings += compared.arguments(run, held.baseline.published)
    other_state = _state(held.states, result) if state else None
    ratio = figure.mean / other.mean if figure and other and figure.mean and other.mean else 1.0
    times = max(ratio, 1 / ratio)
    is_busy = any(one.rule == "host" and compared.is_half(one, times) for one in findings)
    if state and other_state:
        findings = compared.beyond(findings, _judged(other_state, result, run.board))
        findings = list(compared.stopped(findings, state, other_state))
        said = {one.fact: one for one in findings if one.fact}
        at = {"driver": result.driver, "table": result.benchmark}
        differences = list(facts.between(state, other_state, held.name, said, **at))
        joined = [said[one.fact] for one in differences if one.fact in said]
        findings = [*(one for one in findings if one not in joined), *differences]
        # What a busy host of both runs leaves to a disk is no doing of the disk.
        findings += [] if is_busy else compared.disk(state, other_state, held.name)
        findings += compared.machine(state, other_state, held.name, held.control(run))
        usual = [one.rule for one in compared.other_disks(other_state)]
        findings += [one for one in compared.other_disks(state) if one.rule not in usual]
    findings += compared.ports(state, other_state) if state else []
    findings = [replace(one, proof=one.proof or _PROOFS.get(one.rule, "")) for one in findings]
    names = {"benchmark": result.benchmark, "run": run.id}
    return weigh(findings, times, figure.key.metric if figure else "", names)


def _priced(finding: Finding, board: str, result: Result, figure: Figure | None) -> Finding:
    """A mode below TI's expectation, with what that mode costs by TI's data sheet of the board."""
    lesser, side = buses.lesser_mode(result, board), figure.key.metric.partition("_")[0] if figure else ""
    if finding.rule != "mode" or lesser is None:
        return finding
    of_sheets = plugins.of_guides("price")
    price = of_sheets and of_sheets(board, result.driver, side, lesser.mode, lesser.expected.mode)
    return replace(finding, reason=f"{finding.reason}; {price}") if price else finding


def _above(state: State, ours: Figure, theirs: Figure) -> Iterator[Finding]:
    """A published figure above what the bus carries as it runs here: it was another mode."""
    share = state.shares.get(ours.key.metric, 0.0)
    if share and (times := theirs.mean * share / max(ours.result.values(ours.key.metric))) > 1:
        limit = f"{state.bus} carries {theirs.mean / times:.4g} {theirs.unit} at most"
        yield Finding("mode", f"{limit}: the published figure needs a faster mode", size=times)


def _slower_clock(state: State, module: str) -> Iterator[Finding]:
    """A processor that cannot run as fast as the published one did."""
    clock = _SAID_CLOCK.search(module)
    most = [khz for n, khz in state.shown.items() if n.endswith(".cpuinfo_max_freq") and isinstance(khz, int)]
    if clock and most:
        published_khz = float(clock[1]) * (1e6 if clock[2] == "G" else 1e3)
        if (times := published_khz / max(*most, 1)) > 1 + rules.CLOCK:
            reason = f"the CPUs go to {max(most) / 1e3:g} MHz; published with {clock[0]}"
            yield Finding("slower CPU", reason, size=times, whole=True)


def _judged(state: State, result: Result, board: str) -> list[Finding]:
    ours_too = tuple(name.removeprefix("tester ") for name in result.tools)
    return [
        *rules.judge(state, ours_too),
        *facts.findings(state, result.driver, board, result.benchmark),
        *_read(state),
    ]


def _read(state: State) -> Iterator[Finding]:
    """Causes that spoil nothing: they are how the board is set up, or what the hardware can do."""
    for metric, share in state.shares.items():
        if share > _FULL:
            yield Finding("bus", f"{metric} is {share:.0%} of what {state.bus} can carry")
    ticks = {name: n for name, n in state.counted.items() if name.startswith("cpu_")}
    total = sum(ticks.values())
    if total and 1 - (ticks.get("cpu_idle", 0) + ticks.get("cpu_iowait", 0)) / total > _BUSY:
        yield Finding("processor", "all CPUs were busy during the case")
    for name, governor in state.shown.items():
        policy = name.removesuffix(".scaling_governor")
        if policy != name and governor != "performance" and (speed := _slowed(state, policy)) > 1:
            reason = f"{policy} ran {speed:.2f} times slower than it can, by governor {governor}"
            yield Finding("governor", reason, size=speed, whole=True, proof=_GOVERNOR)


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
