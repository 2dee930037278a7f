"""fio on ext4 on UFS."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="ufs_ext4_fio",
    driver="ufs",
    title="UFS EXT4 FIO",
    section=("UFS Driver",),
    file_system="ext4",
)
