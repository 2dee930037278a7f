"""Buffered writes and cold reads on ext3 on the SD card."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="mmcsd_ext3",
    driver="mmcsd",
    title="MMC EXT3",
    section=("MMCSD", "MMC EXT3"),
    file_system="ext3",
    heading="Raw",
)
