"""What a benchmark is: a pure description of steps (see `step`) and readings of their outputs."""

import enum
import itertools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from evmperf.benchmarks.step import Command, Measure, Plan, SearchStep, Step
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Direction, Metric, ParamValue
from evmperf.model.units import Unit


class Place(enum.StrEnum):
    """Where a benchmark's steps run; also the order in which a run visits them."""

    BOOT = "boot"
    UBOOT = "uboot"
    SHELL = "shell"
    SLEEP = "sleep"
    """The shell too, but last: a board that does not wake again costs a power cycle."""


@dataclass(frozen=True)
class Profile:
    """The parameters of a benchmark, `full` or `quick`: samples of both are never compared."""

    cases: tuple[Case, ...]
    repeats: int = 1

    @classmethod
    def crossed(
        cls,
        full: Mapping[str, Iterable[ParamValue]],
        quick: Mapping[str, Iterable[ParamValue]] | None = None,
        own: Mapping[str, tuple[Metric, ...]] | None = None,
        /,
        repeats: tuple[int, int] = (1, 1),
        **params: ParamValue | tuple[ParamValue, ParamValue],
    ) -> dict[str, Self]:
        """The profiles `full` and `quick`: a row for each combination of the parameters `full`, which label
        it; `quick` has other values of some. All rows have `params`, of a pair of which each profile has one;
        `own` are the metrics of rows that have their own.
        """
        profiles, axes = {}, {name: tuple(values) for name, values in full.items()}
        for n, name in enumerate(("full", "quick")):
            given = {k: v[n] if isinstance(v, tuple) else v for k, v in params.items()}
            rows = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())]
            labels = ["|".join(map(str, row.values())) for row in rows]
            cases = (
                Case(label, {**row, **given}, (own or {}).get(label, ()))
                for label, row in zip(labels, rows, strict=True)
            )
            profiles[name] = cls(tuple(cases), repeats[n])
            axes |= {name: tuple(values) for name, values in (quick or {}).items()}
        return profiles


def unlisted(board: Board, section: str, key: str, name: str) -> str:
    """Why the board does not have a row: the list of its file does not name it; "" if it does."""
    reason = f"{board.file_name}: targets.main.options.{section}.{key} does not list {name}"
    return "" if name in getattr(getattr(board.options, section), key) else reason


def unset(board: Board, section: str, key: str) -> str:
    """Why the board lacks what an option names: its file does not set it; "" if it does."""
    reason = f"{board.file_name} does not set targets.main.options.{section}.{key}"
    return "" if board.says(section, key) else reason


def percentage(name: str, title: str) -> Metric:
    """A CPU load or a loss, in percent."""
    return Metric(name, Unit.PERCENT, Direction.LOWER, title, 0.0, 100.0)


OWN_TOOL = "own"
"""evmperf's way of a table that TI measures with a program of its own; that is the way `ti`."""

Option = tuple[str, str]
"""An option of the board file that a benchmark needs: driver section and key."""


def noted(section: str, *keys: str, **more: str) -> Callable[[Board], Mapping[str, str]]:
    """Conditions of a benchmark: options of the board file as text, and `more`."""
    return lambda board: {**{key: board.text(section, key) for key in keys}, **more}


@dataclass(frozen=True)
class Benchmark:
    """One table of the guide. Ids and titles are those of the guide inventory."""

    name: str
    driver: str
    title: str
    section: tuple[str, ...]
    metrics: tuple[Metric, ...]
    """Of the rows that have none of their own; where all have, one of each name."""
    profiles: Mapping[str, Profile]
    place: Place = Place.SHELL
    steps: Callable[[Board, Case, Plan], Sequence[Step]] = field(default=lambda board, case, plan: ())
    """The steps of a row, in order, equal for equal board, row and plan. Boot benchmarks have none."""
    tools: tuple[str, ...] = ()
    """Programs that the board must have on its PATH."""
    board_tools: Callable[[Board], tuple[str, ...]] = field(default=lambda board: ())
    """More such programs, where the board file says which."""
    tester_tools: tuple[str, ...] = ()
    """Programs that the tester must have on its PATH."""
    options: tuple[Option, ...] = ()
    version: int = 1
    """Raised when a change of the module changes what is measured."""
    conditions: Callable[[Board], Mapping[str, str]] = field(default=lambda board: {})
    ti: "Benchmark | None" = None
    """The same table by TI's own program, which is used where the board has it."""
    more: Callable[[str], Metric | None] = field(default=lambda name: None)
    """Metrics that a board file adds, by name."""
    lacks: Callable[[Board, Case], str] = field(default=lambda board, case: "")
    """One line why a board that can run the benchmark does not have a row, "" if it has."""

    def cases(self, profile: str) -> tuple[Case, ...]:
        """The cases of a profile; a benchmark without the profile has none."""
        entry = self.profiles.get(profile)
        return entry.cases if entry else ()

    def unsupported(self, board: Board, case: Case | None = None) -> str:
        """Why `board` cannot run this benchmark, or this row of it, by its file; "" if it can."""
        for word in (self.name, self.driver):
            if reason := board.options.absent.get(word):
                return reason
        if self.driver not in board.features:
            return f"{board.file_name} does not list the feature {self.driver}"
        if self.place in (Place.BOOT, Place.UBOOT):
            arguments = bool(case and case.params.get("kernel_arguments"))
            types = board.without_uboot if self.place is Place.UBOOT else ""
            if reason := board.without_boots or types or (board.without_arguments if arguments else ""):
                return reason
        for section, key in self.options:
            if reason := unset(board, section, key):
                return reason
        if self.tester_tools and not board.tester:
            return (
                f"{board.file_name} does not set targets.main.options.tester.host, "
                f"and $EVMPERF_TESTER is not set"
            )
        return self.lacks(board, case) if case else ""

    def declared_steps(self, board: Board, case: Case, profile: str) -> Sequence[Step]:
        """The steps of a row without a runner's ports and keys, for counting, showing and comparing."""
        return self.planned(board, case, Plan(self.profiles[profile].repeats))

    def planned(self, board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        """The steps of a row; without repetitions of its own, each measuring step as often as planned."""
        steps = [*self.steps(board, case, plan)]
        if any(isinstance(step, Measure) and step.repetition for step in steps):
            return steps
        return [
            _repeated(step, number) if number else step
            for step in steps
            for number in range(plan.repeats if isinstance(step, Measure) else 1)
        ]

    def by(self, tool: str, programs: Container[str] = ()) -> "Benchmark":
        """This table by `tool`: "ti", OWN_TOOL, or "", which is TI's where `programs` have its own."""
        own = self.ti is None or tool == OWN_TOOL
        if own or (not tool and not all(name in programs for name in self.ti_tools)):
            return self
        return self.ti or self

    @property
    def ti_tools(self) -> tuple[str, ...]:
        """What makes TI's way possible, programs beside the board as `tester NAME`; () without such a way."""
        if self.ti is None:
            return ()
        beside = (f"tester {name}" for name in self.ti.tester_tools if name not in self.tester_tools)
        return (*(name for name in self.ti.tools if name not in self.tools), *beside)

    def tools_on(self, board: Board) -> tuple[str, ...]:
        """Programs that `board` must have on its PATH."""
        return (*self.tools, *self.board_tools(board))

    def shared_key(self, step: Command | SearchStep) -> str:
        """What the execution of a step is shared under, "" for one of its case alone."""
        shared = step.shared if isinstance(step, Measure) else ""
        return f"{self.driver} {shared}" if shared else ""

    def label(self, case: Case, step: Command | SearchStep) -> str:
        """The label of a step in messages and LAVA's logs; steps of one execution share it."""
        return self.shared_key(step) or f"{self.name}/{case.label}/{step.name}"

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """What is measured in one row."""
        return case.metrics or self.metrics

    def metric(self, name: str, case: Case | None = None) -> Metric:
        """The declared metric of that name, the row's own first; raises RefusedOutput without one."""
        for metric in self.metrics_of(case) if case else self.metrics:
            if metric.name == name:
                return metric
        if more := self.more(name):
            return more
        raise RefusedOutput(f"{self.name} declares no metric {name!r}, but its parser made one")


def _repeated(step: Step, number: int) -> Step:
    """A measuring step as its further repetition, counted from 1."""
    assert isinstance(step, Measure)
    again = f"{step.name} {number + 1}"
    shared = step.shared and f"{step.shared} {number + 1}"
    return replace(step, name=again, repetition=number, shared=shared)
