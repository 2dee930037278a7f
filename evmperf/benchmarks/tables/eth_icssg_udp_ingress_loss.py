"""ICSSG UDP Ingress Throughput (possible loss)."""

from evmperf.benchmarks.families.ethernet import udp_flood_benchmark

BENCHMARK = udp_flood_benchmark(
    name="eth_icssg_udp_ingress_loss",
    driver="icssg",
    title="ICSSG UDP Ingress Throughput (possible loss)",
    section=("Ethernet", "ICSSG Ethernet Driver"),
)
