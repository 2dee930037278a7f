"""Buffered writes and cold reads on vfat on a disk in the mSATA slot."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles

BENCHMARK = file_system_benchmark(
    name="msata_vfat_1g",
    driver="msata",
    title="mSATA VFAT SSD 1G",
    section=("SATA Driver", "mSATA Driver"),
    file_system="vfat",
    profiles=file_system_profiles(full_bytes=1 << 30),
)
