"""A host writing a file to the board, which is a USB disk."""

from evmperf.benchmarks.families.gadget import gadget_benchmark

BENCHMARK = gadget_benchmark(
    name="usbdev_hs_slave_write",
    title="USBDEVICE HIGHSPEED SLAVE_WRITE_THROUGHPUT",
    before=lambda file, mib: "true",
    transfer=lambda file, mib: (
        f"rm -f {file}; dd if=/dev/zero of={file} bs=1M count={mib} oflag=direct"
    ),
)
