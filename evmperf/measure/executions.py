"""Executions of steps, and those that several cases share."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evmperf.benchmarks.step import Outputs
from evmperf.measure.bench import Clock
from evmperf.model.errors import BoardError, ToolError

_AT_MOST = 2
"""Maximum executions under one key: a refused output is retried once, not once per row."""


@dataclass(frozen=True)
class Execution:
    """The outputs of a step's command, its end (nanoseconds since the epoch), and its raw files
    once they are stored.
    """

    outputs: Outputs
    ended_ns: int
    raw: list[str] = field(default_factory=list)


@dataclass
class _Shared:
    count: int = 0
    done: Execution | None = None
    error: ToolError | BoardError | None = None


class Executions:
    """Executes steps, those with the same key (except "") once, failed ones included."""

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._shared: dict[str, _Shared] = {}

    def get(self, key: str, perform: Callable[[], Outputs]) -> Execution:
        """The execution under `key`, once; raises what `perform` raises, later ToolError."""
        if not key:
            return Execution(perform(), self._clock.time_ns())
        shared = self._shared.setdefault(key, _Shared())
        if shared.done:
            return shared.done
        if shared.error:
            raise ToolError(f"not run again after another case: {shared.error}")
        shared.count += 1
        try:
            shared.done = Execution(perform(), self._clock.time_ns())
        except (ToolError, BoardError) as error:
            shared.error = error
            raise
        return shared.done

    def may_repeat(self, key: str) -> bool:
        """Whether `get` will execute again after a refused output."""
        shared = self._shared.get(key)
        if shared is None:
            return True
        if shared.count >= _AT_MOST:
            return False
        shared.done = shared.error = None
        return True
