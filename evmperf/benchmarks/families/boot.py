"""What the marks of a boot amount to: the metrics of the boot-time benchmarks."""

from collections.abc import Mapping

from evmperf.boards.console.marks import ObservedBoot, Phase, allowed_s, seconds
from evmperf.model.errors import Kind, RefusedOutput
from evmperf.model.records import BootFailure, BootMark, BootRecord
from evmperf.model.results import Direction, Metric, Reading
from evmperf.model.units import Unit

SPANS: tuple[tuple[str, Phase, Phase, str, bool], ...] = (
    ("boot_time", Phase.STARTING_KERNEL, Phase.PROMPT, "Boot time", True),
    ("power_to_output", Phase.POWER_ON, Phase.FIRST_OUTPUT, "Power-on to first output", False),
    ("output_to_uboot", Phase.FIRST_OUTPUT, Phase.UBOOT_BANNER, "First output to U-Boot", False),
    ("uboot", Phase.UBOOT_BANNER, Phase.STARTING_KERNEL, "U-Boot with its dialogue", False),
    ("kernel", Phase.STARTING_KERNEL, Phase.INIT_STARTED, "Kernel to init", False),
    ("userland", Phase.INIT_STARTED, Phase.PROMPT, "Init to prompt", False),
    ("output_to_kernel", Phase.FIRST_OUTPUT, Phase.FIRST_KERNEL_LINE, "First output to kernel", False),
)
"""Metric, from mark, to mark, title, and whether every boot must show it."""

METRICS = tuple(
    Metric(name, Unit.SECOND, Direction.LOWER, title, low=0.0, high=600.0, required=required)
    for name, _, _, title, required in SPANS
)

END = "end_"
"""How the metric of an end begins that a board file names."""


def end_metric(name: str) -> Metric | None:
    """The metric of an end that a board file names; None for other names."""
    title = f"Boot to {name.removeprefix(END)}"
    is_end = name.startswith(END)
    return Metric(name, Unit.SECOND, Direction.LOWER, title, 0.0, 3600.0, required=False) if is_end else None


_EFI = "EFI stub"
"""Another beginning of a boot time: EFI and GRUB start Linux without U-Boot saying so."""


class LateStamp(RefusedOutput):
    """A mark of a boot is too far off to count: the lab's host did not read the console in time."""

    kind = Kind.LAB


def readings(boot: ObservedBoot) -> list[Reading]:
    """The spans of one successful boot in seconds, `boot_time` (from "Starting kernel" to the prompt) and
    others where their marks are exact enough. Raises RefusedOutput without "Starting kernel", LateStamp for
    inexact marks.
    """
    if boot.parts:
        return readings_of_parts(boot.parts)
    marks = dict(boot.marks)
    start = start_of(marks)
    # The power switch's own time is its matter; no published figure has it.
    timed = (mark for mark in marks.values() if boot.measured and mark.phase != Phase.POWER_ON)
    off_s = {mark.phase: mark.error_s for mark in timed}
    figures = [
        Reading(name, value, max(marks[begin].error_s, marks[end].error_s))
        for name, phase, end, _, required in SPANS
        # Before a reset by software it is Linux that speaks, and says good-bye.
        if not (boot.warm and Phase.FIRST_OUTPUT in (phase, end))
        and (start is Phase.FIRST_KERNEL_LINE or end is not Phase.FIRST_KERNEL_LINE)
        and (begin := start if phase is Phase.STARTING_KERNEL else phase)
        and (value := seconds(marks, begin, end)) is not None
        and (required or max(off_s.get(p, 0.0) for p in (begin, end)) <= allowed_s(value))
    ]
    if not figures or figures[0].metric != "boot_time" or figures[0].value <= 0:
        if Phase.PROMPT not in marks and start in marks and not boot.error:
            raise RefusedOutput(
                "this boot has no boot time: a message split its prompt, and a whole one came only on request"
            )
        seen = ", ".join(boot.marks) or "nothing"
        raise RefusedOutput(f"this boot has no boot time: its marks are {seen}")
    allowed = allowed_s(figures[0].value)
    for phase in (start, Phase.PROMPT):
        if off_s.get(phase, 0.0) > allowed:
            raise LateStamp(
                f"the time of {phase} may be {marks[phase].error_s * 1000:.0f} ms off, and "
                f"{allowed * 1000:.0f} ms are allowed: the console was not read in time; give "
                f"the lab's user real-time priority (docs/lab-set-up.md) or the host less to do"
            )
    for name, mark in boot.ends.items():
        value = (mark.mono_ns - marks[start].mono_ns) / 1e9
        figures.append(Reading(f"{END}{name}", value, mark.error_s + marks[start].error_s))
    return figures


def readings_of_parts(parts: Mapping[str, float]) -> list[Reading]:
    """The same spans by what kernel and systemd say of the parts of a boot (`systemd_analyze.parts`)."""
    spans = {"kernel": parts["kernel"] + parts.get("initrd", 0.0), "userland": parts["userspace"]}
    return [Reading("boot_time", sum(spans.values())), *(Reading(*span) for span in spans.items())]


def condition(boot: ObservedBoot) -> str:
    """The start of a boot time other than "Starting kernel" of a cold boot; others do not compare."""
    if boot.parts:
        return f"what kernel and systemd say of {boot.warm}"
    first = start_of(boot.marks)
    start = _EFI if first is Phase.EFI_STUB else ""
    if first in (Phase.FIRST_KERNEL_LINE, Phase.TF_A):
        line = "the kernel's first line" if first is Phase.FIRST_KERNEL_LINE else "TF-A's first line"
        start = f"{line} after {'SPL' if Phase.SPL_BANNER in boot.marks else 'SBL'}, no U-Boot"
    return f"{start or 'Starting kernel'} of {boot.warm}" if boot.warm else start


def off_s(boot: ObservedBoot) -> float:
    """Seconds without power before a cold boot, the switch's own included; 0 where nobody knows."""
    on = boot.marks.get(Phase.POWER_ON)
    return max(round((on.wall_ns - boot.started_ns) / 1e9, 1), 0.0) if on and not boot.warm else 0.0


def start_of(marks: Mapping[Phase, BootMark]) -> Phase:
    """Where a boot time begins: without U-Boot (falcon mode, MCU+ SBL), at the kernel's first line, and where
    the kernel is quiet at TF-A's.
    """
    without_uboot = () if Phase.UBOOT_BANNER in marks else (Phase.FIRST_KERNEL_LINE, Phase.TF_A)
    starts = (Phase.STARTING_KERNEL, Phase.EFI_STUB, *without_uboot)
    return next((phase for phase in starts if phase in marks), Phase.STARTING_KERNEL)


def record(boot: ObservedBoot) -> BootRecord:
    """A boot as the spool keeps it (docs/data-model.md)."""
    return BootRecord(
        goal=boot.goal,
        kernel_arguments=boot.kernel_arguments,
        started_ns=boot.started_ns,
        duration_s=boot.duration_s,
        marks=tuple(boot.marks.values()),
        failure=(BootFailure(boot.error.kind, str(boot.error), boot.phase) if boot.error else None),
        post_mortem=boot.post_mortem,
        notes=tuple(boot.notes),
        ends=tuple(boot.ends.values()),
    )
