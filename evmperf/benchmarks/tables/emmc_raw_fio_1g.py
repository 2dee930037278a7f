"""fio on the eMMC's raw scratch partition."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="emmc_raw_fio_1g",
    driver="emmc",
    title="EMMC RAW FIO 1G",
    section=("EMMC Driver", "EMMC RAW FIO 1G"),
    file_system=None,
)
