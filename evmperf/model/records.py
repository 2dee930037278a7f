"""The records of a run beside its results: boots, verdicts, and what a guide held beyond figures.

docs/data-model.md describes them; `evmperf.model.results` has their history.
"""

import msgspec

from evmperf.model import limits
from evmperf.model.alarm import MetricAlarm
from evmperf.model.errors import Kind
from evmperf.model.figures import Key
from evmperf.model.results import Result, SpoolRecord


class BootMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a phase of a boot showed: `mono_ns` on CLOCK_MONOTONIC, `wall_ns` since the epoch.

    What announced it, `text`, arrived at most `error_s` seconds before; the power came on at most so
    long after `power_on`.
    """

    phase: str
    mono_ns: limits.Count
    wall_ns: limits.Count
    error_s: limits.Real
    text: str = ""


class BootFailure(msgspec.Struct, frozen=True):
    """Why a boot failed, and the last phase that it reached ("" for none)."""

    kind: Kind
    message: str
    phase: str


class BootRecord(SpoolRecord, frozen=True, kw_only=True, tag="boot"):
    """One attempt to boot to `goal`: `post_mortem` of a failed one, `notes` on one that went on."""

    goal: str
    kernel_arguments: str = ""
    started_ns: limits.Count
    duration_s: limits.Real
    marks: tuple[BootMark, ...]
    failure: BootFailure | None = None
    post_mortem: str = ""
    notes: tuple[str, ...] = ()
    ends: tuple[BootMark, ...] = ()
    """Marks of ends that the board file names; each came within its `error_s` before or after."""


class VerdictRecord(SpoolRecord, frozen=True, tag="verdict"):
    """What comparing said of one figure after the run: the last one about a figure counts.

    `baseline` is as given; `change` is relative, None if unknown. `was` is the baseline's figure and
    `tolerance` the margin of what is the same, both in the figure's unit; `why` its words,
    `code` that for programs (a Reason); `alarm` its life until then. `owner` answers for the
    limit `goal`, of which the figure says `reached` (a GoalWord). `cause` is what changed with it, in words.
    """

    benchmark: str
    case: str
    metric: str
    driver: str
    verdict: str
    reason: str = ""
    baseline: str = ""
    change: limits.Real | None = None
    was: limits.Real | None = None
    tolerance: limits.Real | None = None
    why: str = ""
    code: str = ""
    alarm: MetricAlarm | None = None
    goal: str = ""
    reached: str = ""
    owner: str = ""
    cause: str = ""

    @property
    def key(self) -> Key:
        """The figure that it is about."""
        return Key(self.benchmark, self.case, self.metric)


class UnknownRecord(SpoolRecord, frozen=True, tag="unknown"):
    """What an imported guide held beyond its figures: where, why it was not read, and its text."""

    line: limits.Ordinal
    reason: str
    text: str


KINDS: tuple[type[SpoolRecord], ...] = (Result, BootRecord, VerdictRecord, UnknownRecord)
"""All there are: a further one is a new version of the schema."""
