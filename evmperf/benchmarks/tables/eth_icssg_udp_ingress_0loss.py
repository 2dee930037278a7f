"""ICSSG UDP Ingress Throughput 0 loss."""

from evmperf.benchmarks.families.ethernet import udp_search_benchmark

BENCHMARK = udp_search_benchmark(
    name="eth_icssg_udp_ingress_0loss",
    driver="icssg",
    title="ICSSG UDP Ingress Throughput 0 loss",
    section=("Ethernet", "ICSSG Ethernet Driver"),
    ingress=True,
    load="CPU Load %",
)
