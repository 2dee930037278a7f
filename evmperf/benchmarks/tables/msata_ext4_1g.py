"""Buffered writes and cold reads on ext4 on a disk in the mSATA slot."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="msata_ext4_1g",
    driver="msata",
    title="mSATA EXT4 SSD 1G",
    section=("SATA Driver", "mSATA Driver"),
    file_system="ext4",
    profiles=file_system_profiles(full_bytes=1 << 30),
)
