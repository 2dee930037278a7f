"""fio on ext4 on the SD card."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="mmcsd_ext4_fio_1g",
    driver="mmcsd",
    title="MMC EXT4 FIO 1G",
    section=("MMCSD", "MMC EXT4 FIO 1G"),
    file_system="ext4",
)
