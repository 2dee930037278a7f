"""What the marks of a boot amount to: the metrics of the boot-time benchmarks."""

from __future__ import annotations

from typing import Any

from evmperf.console.boot import Boot
from evmperf.console.marks import Phase, seconds
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Direction, Metric, Reading
from evmperf.model.units import Unit

SPANS: tuple[tuple[str, Phase, Phase, str, bool], ...] = (
    ("boot_time", Phase.STARTING_KERNEL, Phase.PROMPT, "Boot time", True),
    ("power_to_output", Phase.POWER_ON, Phase.FIRST_OUTPUT, "Power-on to first output", False),
    ("output_to_uboot", Phase.FIRST_OUTPUT, Phase.UBOOT_BANNER, "First output to U-Boot", False),
    ("uboot", Phase.UBOOT_BANNER, Phase.STARTING_KERNEL, "U-Boot with its dialogue", False),
    ("kernel", Phase.STARTING_KERNEL, Phase.INIT_STARTED, "Kernel to init", False),
    ("userland", Phase.INIT_STARTED, Phase.PROMPT, "Init to prompt", False),
)
"""Metric, from mark, to mark, title, and whether every boot must show it."""

METRICS = tuple(
    Metric(name, Unit.SECOND, Direction.LOWER, title, low=0.0, high=600.0, required=required)
    for name, _, _, title, required in SPANS
)


def readings(boot: Boot) -> list[Reading]:
    """The spans of one successful boot in seconds; raises RefusedOutput without "Starting kernel".

    The published figure is `boot_time`, from "Starting kernel" to the prompt.
    """
    found = [
        Reading(name, value)
        for name, begin, end, _, _ in SPANS
        if (value := seconds(dict(boot.marks), begin, end)) is not None
    ]
    if not found or found[0].metric != "boot_time" or found[0].value <= 0:
        seen = ", ".join(boot.marks) or "nothing"
        raise RefusedOutput(f"this boot has no boot time: its marks are {seen}")
    return found


def record(boot: Boot) -> dict[str, Any]:
    """A boot as the spool keeps it (docs/data-model.md)."""
    return {
        "record": "boot",
        "goal": boot.goal,
        "kernel_arguments": boot.kernel_arguments,
        "started_ns": boot.started_ns,
        "duration_s": boot.duration_s,
        "marks": [
            {
                "phase": str(mark.phase),
                "mono_ns": mark.mono_ns,
                "wall_ns": mark.wall_ns,
                "error_s": mark.error_s,
                "text": mark.text,
            }
            for mark in boot.marks.values()
        ],
        "failure": (
            {"kind": str(boot.error.kind), "message": str(boot.error), "phase": boot.phase}
            if boot.error
            else None
        ),
        "post_mortem": boot.post_mortem,
    }
