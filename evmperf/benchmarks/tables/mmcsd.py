"""The SD card: buffered writes and cold reads on file systems, fio, and U-Boot."""

from evmperf.benchmarks.families.storage import file_system_benchmark, fio_benchmark, uboot_fat_benchmark

BENCHMARKS = (
    *(
        file_system_benchmark(
            name=f"mmcsd_{kind}",
            driver="mmcsd",
            title=f"MMC {kind.upper()}",
            section=("MMCSD", f"MMC {kind.upper()}"),
            file_system=kind,
            heading="Raw",
        )
        for kind in ("ext2", "ext3", "ext4")
    ),
    file_system_benchmark(
        name="mmcsd_vfat", driver="mmcsd", title="MMC VFAT", section=("MMCSD", "MMC VFAT"), file_system="vfat"
    ),
    *(
        fio_benchmark(
            name=f"mmcsd_{on}_fio_1g",
            driver="mmcsd",
            title=f"MMC {on.upper()} FIO 1G",
            section=("MMCSD", f"MMC {on.upper()} FIO 1G"),
            file_system=kind,
        )
        for on, kind in (("ext4", "ext4"), ("raw", None))
    ),
    uboot_fat_benchmark(
        name="uboot_mmcsd_fat",
        driver="mmcsd",
        title="UBOOT MMCSD FAT",
        section=("UBoot MMCSD", "UBOOT MMCSD FAT"),
    ),
)
