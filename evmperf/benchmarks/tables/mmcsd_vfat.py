"""Buffered writes and cold reads on VFAT on the SD card."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="mmcsd_vfat",
    driver="mmcsd",
    title="MMC VFAT",
    section=("MMCSD", "MMC VFAT"),
    file_system="vfat",
)
