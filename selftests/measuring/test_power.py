"""A virtual EVM that really sleeps, and an instrument that really speaks SCPI."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.tables import low_power
from evmperf.benchmarks.tables.low_power import RAILS
from evmperf.benchmarks.tools import meter
from evmperf.boards.console import record as console
from selftests.support.instrument import IDENTITY, Instrument, scpi
from selftests.support.sessions import Pytest

pytestmark = pytest.mark.virtual_evm

SLEEP_S = 11
BENCHMARK = "lpm_power_deep_sleep"
VOLTS = dict(zip(RAILS, (0.75, 1.8, 3.29, 1.8, 1.1, 0.74, 1.8), strict=True))
MILLIWATTS = dict(zip(RAILS, (4.88, 2.06, 2.5, 0.56, 0.99, 0.01, 0.01), strict=True))

# QEMU aborts when its eMMC is suspended: its controller leaves the kernel for that time.
ASLEEP = (
    "cd /sys/bus/pci/drivers/sdhci-pci && echo 0000:00:04.0 >unbind && "
    "{ rtcwake -s {seconds} -m freeze; r=$?; echo 0000:00:04.0 >bind; exit $r; }"
)


def measure(quantity: str, channel: int) -> str:
    rail = RAILS[channel - 1]
    return scpi(VOLTS[rail] if quantity == "VOLT" else MILLIWATTS[rail] / 1000 / VOLTS[rail])


@pytest.fixture
def instrument() -> Iterator[Instrument]:
    instrument = Instrument(measure)
    yield instrument
    instrument.close()


def test_one_sleep_gives_every_rail_and_their_sum(
    env_file: Path, instrument: Instrument, measuring: Callable[..., Pytest], tmp_path: Path
) -> None:
    data = yaml.safe_load(env_file.read_text())
    main = data["targets"]["main"]
    main["options"]["power"] = {"rails": list(RAILS), "deep_sleep_command": ASLEEP, "sleep_s": SLEEP_S}
    channels = {rail: number for number, rail in enumerate(RAILS, 1)}
    # As text, which is all that Labgrid's coordinator would pass on.
    main["resources"]["ScpiMeter"] = {
        "visa": instrument.visa,
        "rails": yaml.safe_dump(channels),
        "timeout": 2.0,
    }
    path = tmp_path / "sleeping.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    session = measuring(BENCHMARK, board=path)
    assert session.wait() == 0, session.said
    results = {result.case: result for result in session.measured()}
    assert list(results) == [*RAILS, "Total"]
    for rail in RAILS:
        assert results[rail].values("rail_voltage") == pytest.approx([VOLTS[rail]])
        assert results[rail].values("power") == pytest.approx([MILLIWATTS[rail]])
    assert results["Total"].values("power") == pytest.approx([sum(MILLIWATTS.values())])
    assert results["Total"].values("rail_voltage") == []
    benchmark = catalogue.benchmark(BENCHMARK)
    for result in results.values():
        assert [sample.unit for sample in result.samples] == [
            str(metric.unit)
            for case in benchmark.cases("quick")
            if case.label == result.case
            for metric in benchmark.metrics_of(case)
        ]
        assert result.conditions["meter"] == f"{IDENTITY} (SCPI)"
        assert result.conditions["sleep_command"] == ASLEEP
        assert result.conditions["sleep_s"] == SLEEP_S
        assert result.raw == results["vdd_core"].raw
    texts = {Path(name).name: (session.folder / name).read_text() for name in results["Total"].raw}
    slept = low_power.slept(texts[f"sleep.{low_power.TEXT_FILE}"], SLEEP_S)
    log = meter.parse(texts[f"sleep.{meter.JSON_FILE}"])
    assert len(log.volts["vdd_core"]) >= 3
    assert log.ended_s < slept.lead_s + slept.asleep_s
    # Asked twice a reading, in one window only, and once for its name.
    assert len(instrument.asked) == 1 + 2 * len(RAILS) * len(log.volts["vdd_core"])
    typed = [r.mono_ns for r in console.read(session.folder / "console.log") if r.kind == ">"]
    pauses = [(b - a) / 1e9 for a, b in itertools.pairwise(typed)]
    assert max(pauses) > SLEEP_S + low_power.LEAD_S, "something was typed at a sleeping board"
