"""U-Boot reading and writing the eMMC."""

from evmperf.benchmarks.families.storage import uboot_mmc_benchmark

BENCHMARK = uboot_mmc_benchmark(
    name="uboot_emmc_raw",
    driver="emmc",
    title="UBOOT EMMC RAW",
    section=("UBoot EMMC Driver",),
)
