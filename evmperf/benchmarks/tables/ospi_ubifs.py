"""Buffered writes and cold reads on UBIFS on the flash.

The file has 2 MiB, so the 5242880 bytes of the other file system tables are no row here.
"""

from evmperf.benchmarks.families.flash import UBIFS
from evmperf.benchmarks.families.storage import BUFFER_SIZES, file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="ospi_ubifs",
    driver="ospi",
    title="OSPI Flash Driver",
    section=("Linux OSPI Flash Driver", "UBIFS"),
    file_system=UBIFS,
    profiles=file_system_profiles(2 << 20, 1 << 20, BUFFER_SIZES[:4]),
)
