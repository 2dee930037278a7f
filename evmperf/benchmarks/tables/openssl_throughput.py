"""Throughput of OpenSSL's ciphers and digests."""

from evmperf.benchmarks.families.openssl_speed import BLOCK_SIZES, openssl_benchmark, throughput
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit

BENCHMARK = openssl_benchmark(
    name="openssl_throughput",
    title="OpenSSL Performance",
    metric=Metric(
        "throughput",
        Unit.KILOBYTE_PER_SECOND,
        Direction.HIGHER,
        "throughput",
        low=10.0,
        high=100_000_000,
    ),
    rows=lambda algorithm, seconds: [
        Case(
            f"{algorithm}|{size}",
            {"algorithm": algorithm, "buffer_size": size, "seconds": seconds},
        )
        for size in BLOCK_SIZES
    ],
    read=throughput,
)
