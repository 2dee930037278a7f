"""Buffered writes and cold reads on vfat on the eMMC."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="emmc_vfat",
    driver="emmc",
    title="EMMC VFAT",
    section=("EMMC Driver", "EMMC VFAT"),
    file_system="vfat",
)
