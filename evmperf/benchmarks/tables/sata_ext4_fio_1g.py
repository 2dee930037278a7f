"""fio on ext4 on a disk at the SATA port."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="sata_ext4_fio_1g",
    driver="sata",
    title="SATA EXT4 FIO 1G",
    section=("SATA Driver", "SATA EXT4 FIO 1G"),
    file_system="ext4",
)
