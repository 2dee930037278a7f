"""Buffered writes and cold reads on ext2 on a disk at the USB host port."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="usbhost_msc_ext2",
    driver="usb",
    title="USBHOST MSC EXT2",
    section=("USB Driver", "USB Host Controller"),
    file_system="ext2",
)
