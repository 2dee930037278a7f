"""U-Boot writing and reading a file on the SD card."""

from evmperf.benchmarks.families.storage import uboot_fat_benchmark

BENCHMARK = uboot_fat_benchmark(
    name="uboot_mmcsd_fat",
    driver="mmcsd",
    title="UBOOT MMCSD FAT",
    section=("UBoot MMCSD", "UBOOT MMCSD FAT"),
)
