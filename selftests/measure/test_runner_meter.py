"""The meter, read while a board sleeps."""

import pytest

from evmperf.benchmarks.step import MeasurePower, MeterWindow
from evmperf.benchmarks.tools import meter
from evmperf.model.errors import BoardError, Kind, LabError, ToolError
from evmperf.model.results import Reading, Status
from selftests.support.fakes import SteppingClock
from selftests.support.runners import A, B, make_rows


class RailMeter:
    """Reads 1 V and 2 A; what it is asked is noted among what the board is."""

    def __init__(self, asked=(), error=None):
        self.asked = asked
        self.error = error

    def identity(self):
        return "a meter of the selftests"

    def check(self, rails):
        if self.error:
            raise self.error

    def read(self, rails):
        self.asked.append("read")
        return dict.fromkeys(rails, ("1 V", "2 A"))


def power(outputs):
    log = meter.parse(outputs[meter.JSON_FILE])
    assert log.first_s >= 0.05
    return [Reading("rate", log.power("core") / 1000 + float(outputs["after"]))]


METERED = make_rows(
    lambda case: [
        MeasurePower(
            "sleep",
            "true",
            10,
            parse=power,
            shared="sleep",
            window=MeterWindow(("core",), 0.05, 0.1, 0.2, 'echo 10 >"$OUT/after"'),
        )
    ]
)


def test_the_meter_waits_by_the_runners_clock(lab):
    window = MeterWindow(("core",), 3600.0, 60.0, 7200.0, 'echo 10 >"$OUT/after"')
    sleep = MeasurePower("sleep", "true", 10, parse=power, window=window)
    runner = lab(meter=RailMeter([]), clock=SteppingClock())
    result = runner.measure(make_rows(lambda case: [sleep]), A)
    assert result.values("rate") == [12.0]
    assert 7200 < result.tool_s < 7300


def test_the_meter_is_read_between_the_two_commands_of_one_shared_step(lab):
    runner = lab()
    asked = runner.bench.shell().asked
    runner.bench._meter = RailMeter(asked)
    results = [runner.measure(METERED, case) for case in (A, B)]
    assert [result.values("rate") for result in results] == [[12.0], [12.0]]
    for result in results:
        assert result.conditions["meter"] == "a meter of the selftests"
        assert result.raw == results[0].raw
        assert any(name.endswith(meter.JSON_FILE) for name in result.raw)
    first, last = asked.index("read"), len(asked) - asked[::-1].index("read")
    assert set(asked[first:last]) == {"read"}, "something was typed while the meter read"
    assert asked[first - 1].startswith("set -- true")
    assert "after" in asked[last]
    assert len(asked) == last + 1, "one execution for both"


def test_a_meter_without_the_rail_is_a_broken_lab_before_anything_is_started(lab):
    runner = lab(meter=RailMeter(error=LabError("the meter is not connected to core")))
    with pytest.raises(LabError, match="not connected to core"):
        runner.measure(METERED, A)
    assert not any("set -- true" in command for command in runner.bench.shell().asked)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (BoardError("the shell does not come back"), Kind.BOARD, "does not come back"),
        (ToolError("`x` did not end: it was interrupted"), Kind.TOOL, "did not end"),
    ],
)
def test_a_board_that_does_not_wake_gives_no_figure(lab, error, kind, message):
    runner = lab([None, None, error])  # facts, start, check
    runner.bench._meter = RailMeter([])
    result = runner.measure(METERED, A)
    assert (result.status, result.samples) == (Status.FAILED, ())
    assert result.failures[0].kind is kind
    assert message in result.failures[0].message
    assert runner.bench.abandoned == (kind is Kind.BOARD)
