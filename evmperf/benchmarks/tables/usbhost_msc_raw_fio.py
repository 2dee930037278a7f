"""fio on the raw scratch partition of a disk at the USB host port."""

from evmperf.benchmarks.families.storage import fio_benchmark

BENCHMARK = fio_benchmark(
    name="usbhost_msc_raw_fio",
    driver="usb",
    title="USBHOST MSC RAW FIO",
    section=("USB Driver", "USB Host Controller"),
    file_system=None,
)
