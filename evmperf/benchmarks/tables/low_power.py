"""Power of sleeping boards."""

from evmperf.benchmarks.families.lowpower import low_power_benchmark

BENCHMARKS = (
    low_power_benchmark(
        name="lpm_power_deep_sleep",
        title="Deep Sleep Power Performance",
        command="deep_sleep_command",
        off=(),
    ),
    low_power_benchmark(
        name="lpm_power_rtc_ddr",
        title="RTC Only + DDR Power Performance",
        command="rtc_ddr_command",
        off=("vdd_core", "vdda_1v8"),
    ),
)
