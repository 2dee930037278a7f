"""Buffered writes and cold reads on ext4 on the SD card."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="mmcsd_ext4",
    driver="mmcsd",
    title="MMC EXT4",
    section=("MMCSD", "MMC EXT4"),
    file_system="ext4",
    heading="Raw",
)
