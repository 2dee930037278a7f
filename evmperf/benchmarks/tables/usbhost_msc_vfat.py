"""Buffered writes and cold reads on vfat on a disk at the USB host port."""

from evmperf.benchmarks.families.storage import file_system_benchmark

BENCHMARK = file_system_benchmark(
    name="usbhost_msc_vfat",
    driver="usb",
    title="USBHOST MSC VFAT",
    section=("USB Driver", "USB Host Controller"),
    file_system="vfat",
)
