"""CPSW TCP Bidirectional Throughput Interrupt Pacing."""

from evmperf.benchmarks.families.ethernet import tcp_benchmark

BENCHMARK = tcp_benchmark(
    name="eth_cpsw_tcp_bidir_pacing",
    driver="cpsw",
    title="CPSW TCP Bidirectional Throughput Interrupt Pacing",
    section=("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    published_tester="192.168.0.1",
    pacing=True,
)
