"""fio on the raw scratch partition of UFS."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="ufs_raw_fio",
    driver="ufs",
    title="UFS RAW FIO",
    section=("UFS Driver",),
    file_system=None,
)
