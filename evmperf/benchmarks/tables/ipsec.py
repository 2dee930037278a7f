"""IPsec in software and in the accelerator."""

from evmperf.benchmarks.families.ipsec import ipsec_benchmark

BENCHMARKS = (
    ipsec_benchmark(name="ipsec_hw", title="IPSec Hardware Performance", accelerated=True),
    ipsec_benchmark(name="ipsec_sw", title="IPSec Software Performance", accelerated=False),
)
