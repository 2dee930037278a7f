"""One boot: what was asked for, what the console showed, and how it ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evmperf.console.marks import Mark, Phase
from evmperf.model.errors import EvmperfError


@dataclass(frozen=True)
class ObservedBoot:
    """One boot: what was asked for, its marks, and why it failed if it did.

    `goal` is the state that was asked for (uboot, booted, shell), `started_ns` is since the epoch,
    `duration_s` is the time in seconds from before the power-off to the prompt. `measured` says whether the
    errors of its marks were measured, or are only stated. `notes` are what it is good to know of it although
    it went on, as a boot loader that started twice. `warm` says what a boot without
    a power cycle was, "" for a cold one.
    """

    goal: str
    kernel_arguments: str
    started_ns: int
    duration_s: float
    marks: Mapping[Phase, Mark]
    error: EvmperfError | None = None
    phase: str = ""
    post_mortem: str = ""
    measured: bool = True
    notes: Sequence[str] = ()
    warm: str = ""
    told: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the boot's parts as its kernel and systemd tell them, where no console does."""
