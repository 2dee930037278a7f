"""CPSW TCP Bidirectional Throughput."""

from evmperf.benchmarks.families.ethernet import tcp_benchmark

BENCHMARK = tcp_benchmark(
    name="eth_cpsw_tcp_bidir",
    driver="cpsw",
    title="CPSW TCP Bidirectional Throughput",
    section=("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    published_tester="192.168.0.1",
)
