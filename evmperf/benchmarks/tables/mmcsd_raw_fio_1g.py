"""fio on a raw partition of the SD card."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="mmcsd_raw_fio_1g",
    driver="mmcsd",
    title="MMC RAW FIO 1G",
    section=("MMCSD", "MMC RAW FIO 1G"),
    file_system=None,
)
