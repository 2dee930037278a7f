"""Buffered writes and cold reads on ext4 on a disk at the USB host port."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="usbhost_msc_ext4",
    driver="usb",
    title="USBHOST MSC EXT4",
    section=("USB Driver", "USB Host Controller"),
    file_system="ext4",
)
