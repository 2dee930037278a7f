"""What a benchmark does: the kinds of its steps. A step is shell text (for Linux or for U-Boot) and, where it
measures, a parser for what it leaves, so that it runs over a console, over SSH, and inside a LAVA job.
"""

import enum
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Reading

CONSOLE = "console"
"""Name of the only output of a U-Boot step."""

Outputs = Mapping[str, str]
"""Output files of one step: name to text. A U-Boot step has one, CONSOLE."""

Parse = Callable[[Outputs], list[Reading]]
"""What a step measured; raises RefusedOutput for outputs that it does not take."""


def output(outputs: Outputs, name: str) -> str:
    """One output file; raises RefusedOutput for one that the step did not leave."""
    if name not in outputs:
        raise RefusedOutput(f"the step wrote no {name}", "\n".join(outputs.values()))
    return outputs[name]


def readings(**values: float) -> list[Reading]:
    """A reading of each metric, by name."""
    return [Reading(metric, value) for metric, value in values.items()]


def reading_of(metric: str, file: str, parser: Callable[..., float], *arguments: object) -> Parse:
    """The parse of a step with one figure, in one output file: `parser` takes its text and the arguments."""
    return lambda outputs: [Reading(metric, parser(output(outputs, file), *arguments))]


class Where(enum.StrEnum):
    """Which machine a step's command runs on."""

    BOARD = "board"
    TESTER = "tester"


@dataclass(frozen=True)
class Plan:
    """What the runner decides for one measurement of a case: `repeats` (the profile's, or `--boots`), a
    `port` that is probably free, and `secret`, 64 random bytes for keys. Both change with each case, so that
    a port in use costs one case.
    """

    repeats: int = 1
    port: int = 20000
    secret: bytes = bytes(64)


@dataclass(frozen=True)
class Command:
    """A command and the machine it runs on: the common part of all kinds of steps except a search.

    `command` is POSIX sh; its outputs are files in `$OUT`. An exit status other than 0 is a failure; after
    `timeout_s` seconds it counts as hung, and usually it takes `expect_s`. If its output does not come back
    whole, it runs once more.
    """

    name: str
    command: str
    timeout_s: float
    expect_s: float = 0.0
    where: Where = field(default=Where.BOARD, kw_only=True)


@dataclass(frozen=True)
class Prepare(Command):
    """A step that the others need: if it fails, only the clean-up follows."""


@dataclass(frozen=True)
class CleanUp(Command):
    """A step that runs whatever happened before."""


@dataclass(frozen=True)
class Measure(Command):
    """A step whose readings are samples of `repetition`, repeated once if they are refused. Steps with the
    same `shared` key are executed once for all their cases.
    """

    # Two steps that do the same are equal; functions made in two calls never are.
    parse: Parse = field(kw_only=True, compare=False)
    repetition: int = field(default=0, kw_only=True)
    shared: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class MeterWindow:
    """Reading the board's rails, while nothing is typed at the board: `settle_s` after a step's command has
    returned, the meter reads all `rails` over and over for `window_s`; `quiet_s` after it, `check` is run on
    the board, hung after `check_s`. All in seconds.
    """

    rails: tuple[str, ...]
    settle_s: float
    window_s: float
    quiet_s: float
    check: str
    check_s: float = 90.0


@dataclass(frozen=True)
class MeasurePower(Measure):
    """A step that reads the board's rails after its command, which starts something in the background. Its
    outputs are those of the window's `check`, and the readings in the form of
    `evmperf.benchmarks.tools.meter`.
    """

    window: MeterWindow = field(kw_only=True)


@dataclass(frozen=True)
class Trial(Command):
    """One step of a search; its readings stay in the conditions and may be implausible."""

    parse: Parse = field(kw_only=True, compare=False)


Trials = Generator[Trial, list[Reading], list[Reading]]
"""A search under way: it yields what to try, is sent the readings of that, and returns the case's
samples. Raises RefusedOutput when nothing that was tried is a result.
"""


def next_trial(trials: Trials, readings: list[Reading] | None = None) -> tuple[Trial | None, list[Reading]]:
    """The next trial of a search by the last readings; at the end None and the samples."""
    try:
        return (next(trials) if readings is None else trials.send(readings)), []
    except StopIteration as end:
        return None, end.value


@dataclass(frozen=True)
class SearchStep:
    """A step of trials that depend on each other; times are of all together. A failed one ends it."""

    name: str
    begin: Callable[[], Trials] = field(compare=False)
    timeout_s: float
    expect_s: float


Step = Prepare | Measure | SearchStep | CleanUp
"""One step of a case. Those of a case have different names, and are done in their order."""
