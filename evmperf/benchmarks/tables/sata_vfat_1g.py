"""Buffered writes and cold reads on vfat on a disk at the SATA port."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="sata_vfat_1g",
    driver="sata",
    title="SATA VFAT 1G",
    section=("SATA Driver",),
    file_system="vfat",
    profiles=file_system_profiles(full_bytes=1 << 30),
)
