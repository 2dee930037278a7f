"""What a benchmark is: a pure description that turns a case into steps and outputs into readings.

A step is shell text (for the board's Linux or for its U-Boot) and a parser for what it leaves
behind. Because both are pure, the same benchmark runs over Labgrid's serial console, over SSH, and
inside a LAVA job whose log is read afterwards.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field

from evmperf.boards.board import Board
from evmperf.boards.vocabulary import ABSENT
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Metric, Reading

CONSOLE = "console"
"""Name of the only output of a U-Boot step."""

Outputs = Mapping[str, str]
"""Output files of one step: name to text. A U-Boot step has one, CONSOLE."""


def output(outputs: Outputs, name: str) -> str:
    """One output file; raises RefusedOutput for one that the step did not leave."""
    if name not in outputs:
        raise RefusedOutput(f"the step left no {name}", "\n".join(outputs.values()))
    return outputs[name]


class Place(enum.StrEnum):
    """Where a benchmark's steps run; also the order in which a run visits them."""

    BOOT = "boot"
    UBOOT = "uboot"
    SHELL = "shell"
    SLEEP = "sleep"
    """The shell too, but last: a board that does not wake again costs a power cycle."""


class Where(enum.StrEnum):
    """Which machine a step's command runs on."""

    BOARD = "board"
    TESTER = "tester"


@dataclass(frozen=True)
class MeterWindow:
    """Reading the board's rails after a step's command, while nothing is typed at the board.

    `settle_s` after the command has returned the meter reads all `rails` over and over for
    `window_s`; `quiet_s` after it has returned, `check` is run on the board, hung when it takes
    more than `check_s`. The step's outputs are those of `check`, and the readings as
    `evmperf.tools.meter` has them. All in seconds.
    """

    rails: tuple[str, ...]
    settle_s: float
    window_s: float
    quiet_s: float
    check: str
    check_s: float = 90.0


@dataclass(frozen=True)
class Step:
    """One command of a benchmark.

    In the shell, `command` is POSIX sh; what it writes into the folder `$OUT` are its outputs,
    and an exit status other than 0 is a failure. `timeout_s` is when it counts as hung, `expect_s`
    what it usually takes (seconds). A step with `parse` measures and is repeated once when its
    output is refused; a step without prepares, and the case ends when it fails. Steps with
    `always` clean up whatever happened.

    Cases whose steps have the same `shared` key use one execution: a tool that prints six rows runs
    once. The readings of a `trial` are no samples: they go back to the generator that yielded the
    step, which decides what comes next, and stay in the result's conditions; `trials` is how many
    like it a search takes at most. A step without a command only computes: its parser gets no
    outputs. With `meter`, the rails are read after the
    command, which has started what goes on without a console.
    """

    name: str
    command: str
    timeout_s: float
    expect_s: float = 0.0
    parse: Callable[[Outputs], list[Reading]] | None = None
    repetition: int = 0
    always: bool = False
    where: Where = Where.BOARD
    shared: str = ""
    trial: bool = False
    trials: int = 1
    meter: MeterWindow | None = None


Steps = Iterable[Step] | Generator[Step, list[Reading] | None, None]
"""The steps of a case, in order. A generator is sent the readings of the step it yielded, None
for a step that failed or measures nothing.
"""


@dataclass(frozen=True)
class Profile:
    """The parameters of a benchmark: `full` as published, `quick` for a first look.

    Samples of different profiles are different quantities and never compared.
    """

    cases: tuple[Case, ...]
    repeats: int = 1


Option = tuple[str, str]
"""An option of the board file that a benchmark needs: driver section and key."""


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
    place: Place
    steps: Callable[[Board, Case, Profile], Steps]
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
    lacks: Callable[[Board, Case], str] = field(default=lambda board, case: "")
    """One line why a board that can run the benchmark does not have a row, "" if it has."""

    def cases(self, profile: str) -> tuple[Case, ...]:
        """The cases of a profile; a benchmark without the profile has none."""
        found = self.profiles.get(profile)
        return found.cases if found else ()

    def unsupported(self, board: Board, case: Case | None = None) -> str:
        """One line why `board` cannot run this benchmark, or this row of it, from its file alone;
        "" if it can.
        """
        for word in (self.name, self.driver):
            if reason := board.option(ABSENT, word):
                return str(reason)
        if self.driver not in board.features:
            return f"{board.file_name} does not list the feature {self.driver}"
        for section, key in self.options:
            if board.option(section, key) is None:
                return f"{board.file_name} does not say targets.main.options.{section}.{key}"
        if self.tester_tools and not board.tester and not board.is_virtual:
            return (
                f"{board.file_name} does not say targets.main.options.tester.host, "
                f"and $EVMPERF_TESTER is not set"
            )
        return self.lacks(board, case) if case else ""

    def tools_on(self, board: Board) -> tuple[str, ...]:
        """Programs that `board` must have on its PATH."""
        return (*self.tools, *self.board_tools(board))

    def metrics_of(self, case: Case) -> tuple[Metric, ...]:
        """What is measured in one row."""
        return case.metrics or self.metrics

    def metric(self, name: str, case: Case | None = None) -> Metric:
        """The declared metric of that name (in one row: the row's own); raises RefusedOutput for
        one nobody declared.
        """
        for metric in self.metrics_of(case) if case else self.metrics:
            if metric.name == name:
                return metric
        raise RefusedOutput(f"{self.name} declares no metric {name!r}, but its parser made one")
