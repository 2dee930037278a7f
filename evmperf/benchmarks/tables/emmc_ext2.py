"""Buffered writes and cold reads on ext2 on the eMMC."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="emmc_ext2",
    driver="emmc",
    title="EMMC EXT2",
    section=("EMMC Driver", "EMMC EXT2"),
    file_system="ext2",
)
