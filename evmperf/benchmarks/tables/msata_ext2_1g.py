"""Buffered writes and cold reads on ext2 on a disk in the mSATA slot."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="msata_ext2_1g",
    driver="msata",
    title="mSATA EXT2 SSD 1G",
    section=("SATA Driver", "mSATA Driver"),
    file_system="ext2",
    profiles=file_system_profiles(full_bytes=1 << 30),
)
