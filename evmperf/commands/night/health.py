"""The health of boards: good, suspect after two lab failures in a row, bad after a failed check.
Nights do not use bad boards until a person clears them.

The health of a place is in its Labgrid tags, that of a board without a coordinator in `health.json`
beside the results.
"""

from __future__ import annotations

import enum
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from evmperf.lab.keeping.claim import ask_once, places
from evmperf.lab.keeping.wanted import Wanted
from evmperf.measure.runs.spool import leave_out, write_whole

FAILURES_BEFORE_SUSPECT = 2

_STATE, _WHY, _FAILURES = "health", "health_why", "health_failures"


class HealthState(enum.StrEnum):
    """The health of a board."""

    GOOD = "good"
    SUSPECT = "suspect"
    """Its next use begins with a health check."""
    BAD = "bad"
    """Not used until `evmperf lab health clear`."""


@dataclass(frozen=True)
class Health:
    """A board's state, its lab failures in a row, and the sentence of the last one."""

    state: HealthState = HealthState.GOOD
    failures: int = 0
    why: str = ""

    def after_failure(self, why: str) -> Health:
        """The health after one more failure of the lab or the board."""
        failures = self.failures + 1
        suspect = self.state is HealthState.GOOD and failures >= FAILURES_BEFORE_SUSPECT
        return Health(HealthState.SUSPECT if suspect else self.state, failures, why)

    def as_tags(self) -> dict[str, str]:
        """As Labgrid's tags, where "" removes one."""
        return {
            _STATE: "" if self.state is HealthState.GOOD else str(self.state),
            _WHY: self.why,
            _FAILURES: str(self.failures or ""),
        }

    @classmethod
    def of_tags(cls, tags: Mapping[str, str]) -> Health:
        """As a place's tags say."""
        state, failures = tags.get(_STATE, ""), tags.get(_FAILURES, "")
        known_state = HealthState(state) if state in list(HealthState) else HealthState.GOOD
        count = int(failures) if failures.isdecimal() and len(failures) < 9 else 0
        return cls(known_state, count, tags.get(_WHY, ""))


class Register:
    """The health of all boards: of places at their coordinator, of others in a file."""

    def __init__(self, results: Path) -> None:
        self._path = results / "health.json"
        self._lock = threading.Lock()

    def of(self, board: Wanted) -> Health:
        """A board's health; raises LabError when the coordinator does not answer."""
        return Health.of_tags(self._tags(board.coordinator).get(board.place, {}))

    def keep(self, board: Wanted, health: Health) -> None:
        """Note a board's health; raises LabError."""
        if board.coordinator:
            ask_once("tag", coordinator=board.coordinator, place=board.place, tags=health.as_tags())
            return
        with self._lock:
            tags = self._tags("")
            tags[board.place] = {k: v for k, v in health.as_tags().items() if v}
            text = json.dumps({k: v for k, v in tags.items() if v}, indent=1) + "\n"
            write_whole(self._path, text.encode())

    def all(self, coordinator: str) -> dict[str, Health]:
        """Every board that is not known as good, by name; raises LabError."""
        tags = self._tags("") | (self._tags(coordinator) if coordinator else {})
        healths = {name: Health.of_tags(entry) for name, entry in tags.items()}
        return {name: health for name, health in sorted(healths.items()) if health != Health()}

    def _tags(self, coordinator: str) -> dict[str, dict[str, str]]:
        """The tags of all places at a coordinator, or, for "", of the boards in the file."""
        if coordinator:
            return {place["name"]: place["tags"] for place in places(coordinator)}
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, dict[str, str]])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
            leave_out(f"{self._path}: is damaged ({error}), all boards are taken as well")
            return {}
