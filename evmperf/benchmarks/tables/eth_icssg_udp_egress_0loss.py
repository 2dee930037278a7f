"""ICSSG UDP Egress Throughput."""

from evmperf.benchmarks.families.ethernet import udp_search_benchmark

BENCHMARK = udp_search_benchmark(
    name="eth_icssg_udp_egress_0loss",
    driver="icssg",
    title="ICSSG UDP Egress Throughput",
    section=("Ethernet", "ICSSG Ethernet Driver"),
    ingress=False,
)
