"""CPSW UDP Ingress Throughput (0% loss)."""

from evmperf.benchmarks.families.ethernet import udp_search_benchmark

BENCHMARK = udp_search_benchmark(
    name="eth_cpsw_udp_ingress_0loss",
    driver="cpsw",
    title="CPSW UDP Ingress Throughput (0% loss)",
    section=("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    ingress=True,
)
