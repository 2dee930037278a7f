"""TCP through an IPsec tunnel whose ciphers the board's CPU computes."""

from evmperf.benchmarks.families.ipsec import ipsec_benchmark

BENCHMARK = ipsec_benchmark(name="ipsec_sw", title="IPSec Software Performance", accelerated=False)
