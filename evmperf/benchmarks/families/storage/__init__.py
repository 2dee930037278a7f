"""Tables that the storage benchmarks share (eMMC, SD, NVMe, UFS, USB): fio, file systems, U-Boot.

A benchmark's module names the driver and the table; what is measured and how is here. Everything
destructive goes through `guard`, which looks on the board itself that the scratch partition is
not, and does not hold, the root file system.
"""

from evmperf.benchmarks.families.storage.file_system_table import (
    BUFFER_SIZES,
    file_system_benchmark,
    file_system_profiles,
)
from evmperf.benchmarks.families.storage.fio_table import fio_benchmark
from evmperf.benchmarks.families.storage.scratch import guard
from evmperf.benchmarks.families.storage.uboot_table import (
    uboot_fat_benchmark,
    uboot_mmc_benchmark,
    uboot_scsi_benchmark,
)

__all__ = [
    "BUFFER_SIZES",
    "file_system_benchmark",
    "file_system_profiles",
    "fio_benchmark",
    "guard",
    "uboot_fat_benchmark",
    "uboot_mmc_benchmark",
    "uboot_scsi_benchmark",
]
