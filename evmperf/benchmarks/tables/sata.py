"""Disks at the SATA and mSATA ports: file systems, and fio."""

from evmperf.benchmarks.families.storage import file_system_benchmark, file_system_profiles, fio_benchmark

BENCHMARKS = (
    *(
        file_system_benchmark(
            name=f"{driver}_{kind}_1g",
            driver=driver,
            title=title.format(kind.upper()),
            section=section,
            file_system=kind,
            profiles=file_system_profiles(full_bytes=1 << 30),
        )
        for driver, title, section in (
            ("sata", "SATA {} 1G", ("SATA Driver",)),
            ("msata", "mSATA {} SSD 1G", ("SATA Driver", "mSATA Driver")),
        )
        for kind in ("ext2", "ext4", "vfat")
    ),
    fio_benchmark(
        name="sata_ext4_fio_1g",
        driver="sata",
        title="SATA EXT4 FIO 1G",
        section=("SATA Driver", "SATA EXT4 FIO 1G"),
        file_system="ext4",
    ),
)
