"""Buffered writes and cold reads on ext4 on the eMMC."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="emmc_ext4",
    driver="emmc",
    title="EMMC EXT4",
    section=("EMMC Driver", "EMMC EXT4"),
    file_system="ext4",
)
