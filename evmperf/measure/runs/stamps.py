"""How far off the boot times of old runs may be: what schema 1 did not measure, their console.log tells."""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from evmperf.boards.console import record as console
from evmperf.model.errors import LabError
from evmperf.model.records import BootRecord
from evmperf.model.results import Result, Sample, SpoolRecord

CONSOLE_LOG = "console.log"
"""The console's record in a run's folder."""

MEASURED_SINCE = 2
"""The first schema whose marks and samples state a measured error."""
_SAME_S = 1e-6
"""A span of two marks is the sample's when it is its value to the microsecond."""


def amending(folder: Path, boots: Sequence[BootRecord]) -> Callable[[SpoolRecord], SpoolRecord]:
    """What puts the errors that can be told into the records of an old run, whose boots these all are."""
    bounds_s: dict[int, float] = {}
    with contextlib.suppress(OSError, LabError):
        pieces = console.read(folder / CONSOLE_LOG)
        bounds_s = {piece.mono_ns: piece.bound_ns / 1e9 for piece in pieces if piece.kind == "<"}

    def amended(boot: BootRecord) -> BootRecord:
        errors = ((mark, bounds_s.get(mark.mono_ns, 0.0)) for mark in boot.marks)
        return replace(boot, marks=tuple(replace(m, error_s=max(m.error_s, e)) for m, e in errors))

    # Seconds between any two marks of one boot, and how far off that is at most.
    spans = [
        ((end.mono_ns - begin.mono_ns) / 1e9, max(begin.error_s, end.error_s))
        for boot in map(amended, boots)
        for begin, end in itertools.combinations(boot.marks, 2)
        if begin.mono_ns in bounds_s and end.mono_ns in bounds_s
    ]

    def stated(sample: Sample) -> Sample:
        if sample.error is not None or sample.unit != "s":
            return sample
        errors = [error for span, error in spans if abs(span - sample.value) <= _SAME_S]
        return replace(sample, error=max(errors)) if errors else sample

    def amend(record: SpoolRecord) -> SpoolRecord:
        if isinstance(record, BootRecord):
            return amended(record)
        if isinstance(record, Result):
            return replace(record, samples=tuple(map(stated, record.samples)))
        return record

    return amend
