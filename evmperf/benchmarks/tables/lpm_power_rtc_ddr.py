"""Power of each rail with only the RTC on and the memory in self-refresh."""

from evmperf.benchmarks.families.lowpower import low_power_benchmark

BENCHMARK = low_power_benchmark(
    name="lpm_power_rtc_ddr",
    title="RTC Only + DDR Power Performance",
    command="rtc_ddr_command",
    off=("vdd_core", "vdda_1v8"),
)
