"""CPU load of OpenSSL's ciphers and digests."""

from evmperf.benchmarks.families.openssl_speed import cpu_load, openssl_benchmark
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit

BENCHMARK = openssl_benchmark(
    name="openssl_cpu_load",
    title="OpenSSL CPU Load",
    metric=Metric("cpu_load", Unit.PERCENT, Direction.LOWER, "CPU Load", low=0.1, high=100.0),
    rows=lambda algorithm, seconds: [Case(algorithm, {"algorithm": algorithm, "seconds": seconds})],
    read=cpu_load,
)
