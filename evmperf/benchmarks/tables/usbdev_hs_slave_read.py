"""A host reading a file from the board, which is a USB disk."""

from evmperf.benchmarks.families.gadget import gadget_benchmark

BENCHMARK = gadget_benchmark(
    name="usbdev_hs_slave_read",
    title="USBDEVICE HIGHSPEED SLAVE_READ_THROUGHPUT",
    before=lambda file, mib: f"dd if=/dev/zero of={file} bs=1M count={mib} conv=fsync",
    transfer=lambda file, mib: (
        f"echo 3 >/proc/sys/vm/drop_caches; dd if={file} of=/dev/null bs=1M count={mib}"
    ),
)
