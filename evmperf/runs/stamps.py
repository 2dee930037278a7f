"""How far off the boot times of old runs may be: what schema 1 did not measure, their console.log tells."""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path

import msgspec

from evmperf.console import record as console
from evmperf.model.errors import LabError
from evmperf.model.records import BootRecord
from evmperf.model.results import Result, Sample
from evmperf.model.schema import Record

CONSOLE_LOG = "console.log"
"""The console's record in a run's folder."""

MEASURED_SINCE = 2
"""The first schema whose marks and samples state a measured error."""
_SAME_S = 1e-6
"""A span of two marks is the sample's when it is its value to the microsecond."""


class Stamps:
    """The bounds of one old run's stamps. `boots` are all boots that the run recorded."""

    def __init__(self, folder: Path, boots: Sequence[BootRecord]) -> None:
        self._folder = folder
        self._boots = boots

    def amend(self, record: Record) -> Record:
        """The record with the errors that can be told; as it is where none can."""
        if isinstance(record, BootRecord):
            return self._boot(record)
        if isinstance(record, Result) and any(s.error is None for s in record.samples):
            samples = tuple(self._sample(sample) for sample in record.samples)
            return msgspec.structs.replace(record, samples=samples)
        return record

    @functools.cached_property
    def _bounds_s(self) -> dict[int, float]:
        """Time of a record of the console (CLOCK_MONOTONIC, ns) to its bound; {} without a file."""
        path = self._folder / CONSOLE_LOG
        try:
            return {
                record.mono_ns: record.bound_ns / 1e9 for record in console.read(path) if record.kind == "<"
            }
        except (OSError, LabError):
            return {}

    def _boot(self, boot: BootRecord) -> BootRecord:
        marks = tuple(
            msgspec.structs.replace(mark, error_s=max(mark.error_s, self._bounds_s[mark.mono_ns]))
            if mark.mono_ns in self._bounds_s
            else mark
            for mark in boot.marks
        )
        return msgspec.structs.replace(boot, marks=marks)

    @functools.cached_property
    def _spans(self) -> list[tuple[float, float]]:
        """Seconds between any two marks of one boot, and how far off that is at most."""
        return [
            ((end.mono_ns - begin.mono_ns) / 1e9, max(begin.error_s, end.error_s))
            for boot in map(self._boot, self._boots)
            for begin, end in itertools.combinations(boot.marks, 2)
            if begin.mono_ns in self._bounds_s and end.mono_ns in self._bounds_s
        ]

    def _sample(self, sample: Sample) -> Sample:
        if sample.error is not None or sample.unit != "s":
            return sample
        errors = [error for span, error in self._spans if abs(span - sample.value) <= _SAME_S]
        return msgspec.structs.replace(sample, error=max(errors)) if errors else sample
