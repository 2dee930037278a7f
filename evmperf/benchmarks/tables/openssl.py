"""OpenSSL's ciphers and digests: throughput, and CPU load."""

from evmperf.benchmarks.families.openssl_speed import BLOCK_SIZES, cpu_load, openssl_benchmark, throughput
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit

BENCHMARKS = (
    openssl_benchmark(
        name="openssl_throughput",
        title="OpenSSL Performance",
        metric=Metric(
            "throughput", Unit.KILOBYTE_PER_SECOND, Direction.HIGHER, "throughput", low=10.0, high=100_000_000
        ),
        rows=lambda algorithm, seconds: [
            Case(f"{algorithm}|{size}", {"algorithm": algorithm, "buffer_size": size, "seconds": seconds})
            for size in BLOCK_SIZES
        ],
        read=throughput,
    ),
    openssl_benchmark(
        name="openssl_cpu_load",
        title="OpenSSL CPU Load",
        metric=Metric("cpu_load", Unit.PERCENT, Direction.LOWER, "CPU Load", low=0.1, high=100.0),
        rows=lambda algorithm, seconds: [Case(algorithm, {"algorithm": algorithm, "seconds": seconds})],
        read=cpu_load,
    ),
)
