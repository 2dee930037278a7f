"""Places whose holder was kicked: they are reserved for a grace period for the kicker."""

import time
from typing import Any

GRACE_S = 600.0
"""How long a place is reserved for a kicker who has not taken it yet, in seconds."""

KICKED_TAG = "evmperf_kicked"
"""The tag of a place with the time of the kick, in seconds since the epoch."""
LOCKS_TAG = "evmperf_locks"
"""The tag of a place with the lock folder that shows whether the holder lives. A keeper removes it
before it releases a place: if a place becomes free with the tag, its holder was kicked.
"""


class Kicks:
    """The kicks that this keeper has seen, by coordinator and place."""

    def __init__(self) -> None:
        self._by_runs: set[tuple[str, str]] = set()
        self._at: dict[tuple[str, str], float] = {}

    def look(self, coordinator: str, place: Any) -> None:
        """Note a change of a place."""
        key = (coordinator, place.name)
        if place.acquired:
            self._at.pop(key, None)  # the kicker has it, or let somebody else take it
            if "+" in place.acquired:
                self._by_runs.add(key)
            else:
                self._by_runs.discard(key)
        elif key in self._by_runs:
            self._by_runs.discard(key)
            if LOCKS_TAG in place.tags:
                self._at[key] = time.time()

    def at(self, coordinator: str, place: Any) -> float:
        """The time of a free place's kick, in seconds since the epoch; 0 if there was none."""
        said = place.tags.get(KICKED_TAG, "")
        return self._at.get((coordinator, place.name)) or (float(said) if said.isdigit() else 0.0)

    def forget(self, coordinator: str) -> None:
        """Forget the places of a lost coordinator: they become free without a kick."""
        self._by_runs = {key for key in self._by_runs if key[0] != coordinator}
