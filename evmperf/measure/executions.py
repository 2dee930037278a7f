"""What steps left when they were executed, and which executions several cases share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evmperf.benchmarks.step import Outputs
from evmperf.measure.bench import Clock
from evmperf.model.errors import BoardError, ToolError

_AT_MOST = 2
"""Executions under one key: a refused output is worth one more try, not one more for each row."""


@dataclass(frozen=True)
class Execution:
    """What a step's command left, when it ended (nanoseconds since the epoch), and where its raw
    files are, once they are kept.
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
    """Executes steps; those with the same key, "" excepted, once for all who ask.

    One that ended the board's or the tool's way is not tried again for the next case.
    """

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._shared: dict[str, _Shared] = {}

    def get(self, key: str, perform: Callable[[], Outputs]) -> Execution:
        """The execution under `key`, performed if there is none.

        Raises what `perform` raises, and ToolError when it failed for an earlier case.
        """
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
        """Whether a refused output is worth another execution, which `get` will do then."""
        shared = self._shared.get(key)
        if shared is None:
            return True
        if shared.count >= _AT_MOST:
            return False
        shared.done = shared.error = None
        return True
