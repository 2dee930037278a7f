"""ICSSG TCP Bidirectional Throughput Interrupt Pacing."""

from evmperf.benchmarks.families.ethernet import tcp_benchmark

BENCHMARK = tcp_benchmark(
    name="eth_icssg_tcp_bidir_pacing",
    driver="icssg",
    title="ICSSG TCP Bidirectional Throughput Interrupt Pacing",
    section=("Ethernet", "ICSSG Ethernet Driver"),
    published_tester="192.168.2.1",
    pacing=True,
)
