"""TCP through an IPsec tunnel whose ciphers the board's crypto accelerator computes."""

from evmperf.benchmarks.families.ipsec import ipsec_benchmark

BENCHMARK = ipsec_benchmark(name="ipsec_hw", title="IPSec Hardware Performance", accelerated=True)
