"""The eMMC: buffered writes and cold reads on file systems, fio, and U-Boot."""

from evmperf.benchmarks.families.storage import file_system_benchmark, fio_benchmark, uboot_mmc_benchmark

BENCHMARKS = (
    *(
        file_system_benchmark(
            name=f"emmc_{kind}",
            driver="emmc",
            title=f"EMMC {kind.upper()}",
            section=("EMMC Driver", f"EMMC {kind.upper()}"),
            file_system=kind,
        )
        for kind in ("ext2", "ext4", "vfat")
    ),
    *(
        fio_benchmark(
            name=f"emmc_{on}_fio_1g",
            driver="emmc",
            title=f"EMMC {on.upper()} FIO 1G",
            section=("EMMC Driver", f"EMMC {on.upper()} FIO 1G"),
            file_system=kind,
        )
        for on, kind in (("ext4", "ext4"), ("raw", None))
    ),
    uboot_mmc_benchmark(
        name="uboot_emmc_raw", driver="emmc", title="UBOOT EMMC RAW", section=("UBoot EMMC Driver",)
    ),
)
