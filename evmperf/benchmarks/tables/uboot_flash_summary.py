"""Writing and reading 50 MiB of flash in U-Boot."""

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.families import flash
from evmperf.model.units import MEGABYTE, Unit

BENCHMARK = Benchmark(
    name="uboot_flash_summary",
    driver="ospi",
    title="U-Boot QSPI/OSPI throughput summary",
    section=("U-Boot QSPI/OSPI Driver",),
    metrics=flash.metrics(Unit.MEGABYTE_PER_SECOND, "read", "write"),
    profiles=flash.SUMMARY_PROFILES,
    place=Place.UBOOT,
    steps=lambda board, case, profile: flash.uboot_steps(board, flash.summary_bytes(case), MEGABYTE),
    options=(*flash.UBOOT_OPTIONS, ("ospi", "flash")),
    conditions=flash.uboot_conditions,
    lacks=lambda board, case: (
        flash.other_flash(board, case) or flash.too_large(board, flash.summary_bytes(case))
    ),
)
