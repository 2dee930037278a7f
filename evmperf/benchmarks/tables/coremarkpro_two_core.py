"""EEMBC CoreMark-PRO with two contexts."""

from evmperf.benchmarks.families.system import coremark_pro_benchmark

BENCHMARK = coremark_pro_benchmark(name="coremarkpro_two_core", column="MultiCore")
