"""USB: mass storage at the board's host port, and the board as a host's mass storage."""

from evmperf.benchmarks.families.gadget import gadget_benchmark
from evmperf.benchmarks.families.storage import file_system_benchmark, fio_benchmark

_HOST = ("USB Driver", "USB Host Controller")

BENCHMARKS = (
    *(
        file_system_benchmark(
            name=f"usbhost_msc_{kind}",
            driver="usb",
            title=f"USBHOST MSC {kind.upper()}",
            section=_HOST,
            file_system=kind,
        )
        for kind in ("ext2", "ext4", "vfat")
    ),
    fio_benchmark(
        name="usbhost_msc_ext4_fio",
        driver="usb",
        title="USB host mass storage EXT4 FIO",
        section=(*_HOST, "{BOARD}"),
        file_system="ext4",
    ),
    fio_benchmark(
        name="usbhost_msc_raw_fio", driver="usb", title="USBHOST MSC RAW FIO", section=_HOST, file_system=None
    ),
    gadget_benchmark(
        name="usbdev_hs_slave_read",
        title="USBDEVICE HIGHSPEED SLAVE_READ_THROUGHPUT",
        before=lambda file, mib: f"dd if=/dev/zero of={file} bs=1M count={mib} conv=fsync",
        transfer=lambda file, mib: (
            f"echo 3 >/proc/sys/vm/drop_caches; dd if={file} of=/dev/null bs=1M count={mib}"
        ),
    ),
    gadget_benchmark(
        name="usbdev_hs_slave_write",
        title="USBDEVICE HIGHSPEED SLAVE_WRITE_THROUGHPUT",
        before=lambda file, mib: "true",
        transfer=lambda file, mib: f"rm -f {file}; dd if=/dev/zero of={file} bs=1M count={mib} oflag=direct",
    ),
)
