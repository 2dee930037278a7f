"""Writing and reading 50 MiB of flash in Linux, through the MTD's character device."""

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.families import flash
from evmperf.model.units import Unit

BENCHMARK = Benchmark(
    name="linux_flash_summary",
    driver="ospi",
    title="Linux QSPI/OSPI throughput summary",
    section=("Linux QSPI/OSPI Driver",),
    metrics=flash.metrics(Unit.MEGABYTE_PER_SECOND, "read", "write"),
    profiles=flash.SUMMARY_PROFILES,
    place=Place.SHELL,
    steps=lambda board, case, profile: flash.raw_steps(board, flash.summary_bytes(case)),
    tools=("dd", "flash_erase"),
    options=(("ospi", "scratch"), ("ospi", "flash")),
    conditions=lambda board: {"scratch": board.options.ospi.scratch},
    lacks=flash.other_flash,
)
