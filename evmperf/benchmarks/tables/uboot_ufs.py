"""U-Boot writing and reading the UFS device."""

from evmperf.benchmarks.families.storage import uboot_scsi_benchmark

BENCHMARK = uboot_scsi_benchmark(
    name="uboot_ufs",
    driver="ufs",
    title="U-Boot UFS",
    section=("UBoot UFS Driver", "{BOARD}"),
    start="ufs init",
)
