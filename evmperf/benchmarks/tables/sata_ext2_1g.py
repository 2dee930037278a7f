"""Buffered writes and cold reads on ext2 on a disk at the SATA port."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="sata_ext2_1g",
    driver="sata",
    title="SATA EXT2 1G",
    section=("SATA Driver",),
    file_system="ext2",
    profiles=file_system_profiles(full_bytes=1 << 30),
)
