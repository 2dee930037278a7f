"""fio on ext4 on the eMMC."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="emmc_ext4_fio_1g",
    driver="emmc",
    title="EMMC EXT4 FIO 1G",
    section=("EMMC Driver", "EMMC EXT4 FIO 1G"),
    file_system="ext4",
)
