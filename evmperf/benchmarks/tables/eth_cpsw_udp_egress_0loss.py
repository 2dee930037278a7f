"""CPSW UDP Egress Throughput."""

from evmperf.benchmarks.families.ethernet import udp_search_benchmark

BENCHMARK = udp_search_benchmark(
    name="eth_cpsw_udp_egress_0loss",
    driver="cpsw",
    title="CPSW UDP Egress Throughput",
    section=("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    ingress=False,
)
