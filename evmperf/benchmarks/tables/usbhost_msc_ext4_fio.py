"""fio on ext4 on a disk at the USB host port."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="usbhost_msc_ext4_fio",
    driver="usb",
    title="USB host mass storage EXT4 FIO",
    section=("USB Driver", "USB Host Controller", "{BOARD}"),
    file_system="ext4",
)
