"""EEMBC CoreMark-PRO with one context."""

from evmperf.benchmarks.families.system import coremark_pro_benchmark

BENCHMARK = coremark_pro_benchmark(name="coremarkpro", column="SingleCore")
