"""What a machine showed around a case: its modes before, what changed, and what it counted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Value = str | int | float


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the board around one case. Names that begin with `tester.` are the tester's.

    What a machine lacks is absent. Values are as its kernel gives them, names say where they are
    from (docs/data-model.md has the list).
    """

    shown: Mapping[str, Value] = {}
    """Before the case."""
    changed: Mapping[str, Value | None] = {}
    """After the case, what was different then; None for what was gone."""
    counted: Mapping[str, int] = {}
    """By how much counters rose meanwhile; those that did not rise are absent."""
    beside: Mapping[str, float] = {}
    """Processes that were there after the case, and the CPU time that each took meanwhile (s)."""
    seconds: float | None = None
    """From the state before to the state after, on the board's clock."""
    clock: tuple[float, float] | None = None
    """Seconds of the board in one second of the lab: at least, at most. None while unknown."""
    bus: str = ""
    """The bus in its mode, in words; "" where that is not known."""
    shares: Mapping[str, float] = {}
    """By metric: its best sample's share of what the bus can carry at most."""
    missing: str = ""
    """Why a part of it is not known."""

    def after(self, name: str) -> Value | None:
        """A value after the case."""
        return self.changed[name] if name in self.changed else self.shown.get(name)
