"""Places that were taken away from a run: they are kept for who did it, for a grace."""

from __future__ import annotations

import time
from typing import Any

GRACE_S = 600.0
"""How long a place is kept for who has kicked its holder and not yet taken it, in seconds."""

KICKED_TAG = "evmperf_kicked"
"""The tag of a place that says when its holder was kicked, in seconds since the epoch."""
LOCKS_TAG = "evmperf_locks"
"""Whose locks tell whether the holder still lives. A keeper takes it off before it lets go of a
place: one that becomes free with it was taken away.
"""


class Kicks:
    """What this keeper has seen of them, by coordinator and place."""

    def __init__(self) -> None:
        self._by_runs: set[tuple[str, str]] = set()
        self._at: dict[tuple[str, str], float] = {}

    def look(self, coordinator: str, place: Any) -> None:
        """A place has changed."""
        key = (coordinator, place.name)
        if place.acquired:
            self._at.pop(key, None)  # whoever it was kept for has it, or left it to others
            if "+" in place.acquired:
                self._by_runs.add(key)
            else:
                self._by_runs.discard(key)
        elif key in self._by_runs:
            self._by_runs.discard(key)
            if LOCKS_TAG in place.tags:
                self._at[key] = time.time()

    def at(self, coordinator: str, place: Any) -> float:
        """When a free place was taken away from its holder, in seconds since the epoch; 0 if it was
        not, or was held by somebody since.
        """
        said = place.tags.get(KICKED_TAG, "")
        return self._at.get((coordinator, place.name)) or (float(said) if said.isdigit() else 0.0)

    def forget(self, coordinator: str) -> None:
        """A coordinator is gone: its places will be free, and nobody has kicked anybody."""
        self._by_runs = {key for key in self._by_runs if key[0] != coordinator}
