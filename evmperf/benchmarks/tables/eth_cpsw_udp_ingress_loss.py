"""CPSW UDP Ingress Throughput (possible loss)."""

from evmperf.benchmarks.families.ethernet import udp_flood_benchmark

BENCHMARK = udp_flood_benchmark(
    name="eth_cpsw_udp_ingress_loss",
    driver="cpsw",
    title="CPSW UDP Ingress Throughput (possible loss)",
    section=("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
)
