"""The state of a machine around a case: modes before, changes, and counters."""

from collections.abc import Mapping

import msgspec

from evmperf.model.limits import Count, Real

Value = str | int | float


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of the board around one case, without what it lacks, as its kernel gives it
    (docs/data-model.md has the names). Names that begin with `tester.` are the tester's.
    """

    shown: Mapping[str, Value] = {}
    """Before the case."""
    changed: Mapping[str, Value | None] = {}
    """Changed values after the case; None for a value that was gone."""
    counted: Mapping[str, Count] = {}
    """Increments of counters during the case, without zeros."""
    beside: Mapping[str, Real] = {}
    """CPU time (s) during the case of each process that ran after it."""
    seconds: Real | None = None
    """From the state before to the state after, on the board's clock."""
    clock: tuple[Real, Real] | None = None
    """Seconds of the board in one second of the lab: at least, at most. None while unknown."""
    bus: str = ""
    """The bus in its mode, in words; "" where that is not known."""
    shares: Mapping[str, Real] = {}
    """By metric: its best sample's share of what the bus can carry at most."""
    log: tuple[str, ...] = ()
    """Lines of the kernel's log that concern the driver: of the boot, and during the case."""
    missing: str = ""
    """Why a part is unknown."""

    def after(self, name: str) -> Value | None:
        """A value after the case."""
        return self.changed[name] if name in self.changed else self.shown.get(name)
