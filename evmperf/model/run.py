"""A run: one execution of the suite on one board."""

from __future__ import annotations

from typing import Any

import msgspec

from evmperf.model.schema import SCHEMA

NIGHT = "night"
"""The fact that says of which `evmperf night` a run is."""


class Run(msgspec.Struct):
    """One execution of the suite on one board, with everything known about board and software.

    Times are nanoseconds since the epoch. `outcome` is one sentence at the end, "" while running.
    """

    id: str
    board: str
    profile: str
    kind: str = "desk"
    lab: str = ""
    place: str = ""
    started_ns: int = 0
    ended_ns: int = 0
    release: str = ""
    os: str = ""
    exit_status: int | None = None
    outcome: str = ""
    facts: dict[str, Any] = {}
    schema: int = SCHEMA
