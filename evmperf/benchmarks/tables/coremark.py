"""EEMBC CoreMark-PRO with one context, and with two."""

from evmperf.benchmarks.families.system import coremark_pro_benchmark

BENCHMARKS = (
    coremark_pro_benchmark(name="coremarkpro", column="SingleCore"),
    coremark_pro_benchmark(name="coremarkpro_two_core", column="MultiCore"),
)
