"""Energy of windows from a meter's readings; `selftests/measuring/test_power.py` has a meter and a board."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks import catalogue, energy
from evmperf.measure.bench import StepOutput
from evmperf.measure.supply import BoardClock
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import BOOT, Direction, Sample, ToolWindow
from selftests.support.spools import a_case

S = 10**9
BEGAN = 1_790_000_000 * S


def ramp(seconds, watts_per_s=1.0, every=S // 5):
    return [(BEGAN + t, 2.0 + watts_per_s * t / S) for t in range(-S, (seconds + 1) * S + 1, every)]


def result(*windows, **values):
    units = {"write_throughput": "MB/s", "read_throughput": "KiB/s", "perf": "iterations/s"}
    samples = tuple(Sample(name, value, units[name], 0, BEGAN) for name, value in values.items())
    return a_case(samples=samples, windows=windows)


def values(of, series):
    samples, missing = energy.samples(of, series)
    return {sample.metric: round(sample.value, 6) for sample in samples}, missing


@given(st.integers(1, 3 * S), st.integers(2 * S, 6 * S))
def test_a_ramp_is_integrated_to_the_edges_of_the_window(offset, length):
    watts, joules = energy.used(ramp(10), ToolWindow(0, BEGAN + offset, BEGAN + offset + length))
    assert watts == pytest.approx(2 + (offset + length / 2) / S)
    assert joules == pytest.approx(watts * length / S)


def test_a_rate_divides_the_energy_of_its_own_step():
    write = ToolWindow(0, BEGAN, BEGAN + 4 * S, 0.01, "write_throughput")
    read = ToolWindow(0, BEGAN + 4 * S, BEGAN + 6 * S, 0.01, "read_throughput")
    found, missing = values(
        result(write, read, write_throughput=8.0, read_throughput=1_000_000 / 1024), ramp(8)
    )
    assert (found["write_mean_power"], found["write_energy"], found["write_energy_per_mb"]) == (4, 16, 0.5)
    assert (found["read_mean_power"], found["read_energy"], found["read_energy_per_mb"]) == (7, 14, 7)
    assert not missing
    found, _ = values(result(ToolWindow(0, BEGAN, BEGAN + 4 * S, per="perf"), perf=2.0), ramp(8))
    assert found == {"mean_power": 4, "energy": 16, "energy_per_iteration": 2}
    found, _ = values(result(ToolWindow(0, BEGAN, BEGAN + 4 * S, per=BOOT)), ramp(8))
    assert found == {"mean_power": 4, "energy": 16, "energy_per_boot": 16}
    found, _ = values(result(ToolWindow(0, BEGAN, BEGAN + 4 * S, per="perf", shared=True), perf=2.0), ramp(8))
    assert found == {"mean_power": 4}


@pytest.mark.parametrize(
    "series",
    [
        [],
        ramp(8, every=2 * S),
        [one for one in ramp(8) if one[0] > BEGAN],
        [one for one in ramp(8) if one[0] < BEGAN + 4 * S],
        [one for one in ramp(8) if not S < one[0] - BEGAN < 3 * S],
    ],
)
def test_readings_that_do_not_carry_a_window_give_no_energy(series):
    with pytest.raises(RefusedOutput, match="energy"):
        energy.used(series, ToolWindow(0, BEGAN, BEGAN + 4 * S))


def test_the_boards_clock_is_known_better_with_each_step():
    clock, difference = BoardClock(), BEGAN - 100 * S
    ways = [(0.5, 2.0), (0.02, 3.0), (1.0, 0.05)]
    errors = []
    for number, (typed_s, fetched_s) in enumerate(ways):
        uptime_s = 100.0 + 10 * number
        begin = difference + round(uptime_s * S)
        output = StepOutput(0, {}, 4.0, 1, uptime_s)
        found = clock.learn(begin - round(typed_s * S), output, begin + round((4 + fetched_s) * S))
        assert abs(found[0] - begin) <= found[2] * S + 1e7
        assert found[1] - found[0] == pytest.approx(4 * S)
        errors.append(found[2])
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.06
    assert BoardClock().learn(0, StepOutput(0, {}, 4.0, 1), S) is None


def test_each_row_of_the_catalogue_knows_its_rate_and_no_metric_has_a_name_of_energys():
    for benchmark in catalogue.benchmarks().values():
        for metric in benchmark.metrics:
            assert energy.metric(metric.name) is None
    emmc = catalogue.benchmark("emmc_ext4").metrics
    assert energy.per(emmc, ["write_throughput", "write_cpu_load"]) == "write_throughput"
    assert energy.per(emmc, ["write_throughput", "read_throughput"]) == ""
    assert energy.metric("write_energy_per_mb").better is Direction.LOWER
    assert energy.metric("mean_power").better is Direction.NONE
