"""Buffered writes and cold reads on ext2 on the SD card."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="mmcsd_ext2",
    driver="mmcsd",
    title="MMC EXT2",
    section=("MMCSD", "MMC EXT2"),
    file_system="ext2",
    heading="Raw",
)
