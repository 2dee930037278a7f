"""UFS: fio, and U-Boot."""

from evmperf.benchmarks.families.storage import fio_benchmark, uboot_scsi_benchmark

BENCHMARKS = (
    *(
        fio_benchmark(
            name=f"ufs_{on}_fio",
            driver="ufs",
            title=f"UFS {on.upper()} FIO",
            section=("UFS Driver",),
            file_system=kind,
        )
        for on, kind in (("ext4", "ext4"), ("raw", None))
    ),
    uboot_scsi_benchmark(
        name="uboot_ufs",
        driver="ufs",
        title="U-Boot UFS",
        section=("UBoot UFS Driver", "{BOARD}"),
        start="ufs init",
    ),
)
