"""Power of each rail in deep sleep."""

from evmperf.benchmarks.families.lowpower import low_power_benchmark

BENCHMARK = low_power_benchmark(
    name="lpm_power_deep_sleep",
    title="Deep Sleep Power Performance",
    command="deep_sleep_command",
    off=(),
)
