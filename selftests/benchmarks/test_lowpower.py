"""Low-power tables: which record of a sleep and which log of a meter make a figure."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.tables import low_power as lowpower
from evmperf.benchmarks.tables.low_power import RAILS, TOTAL
from evmperf.benchmarks.tools import meter
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.results import Reading
from selftests.support.boardfiles import fake_board
from selftests.support.steps import step_of

KNOWN = yaml.safe_load(Path(__file__).with_name("known.yaml").read_text())
DEEP = catalogue.benchmark("lpm_power_deep_sleep")
RTC = catalogue.benchmark("lpm_power_rtc_ddr")
SLEEP_S = 20
COMMAND = "rtcwake -s {seconds} -m mem"


def board(tmp_path, **power):
    options = {
        "rails": list(RAILS),
        "deep_sleep_command": COMMAND,
        "rtc_ddr_command": COMMAND,
        "sleep_s": SLEEP_S,
        **power,
    }
    return fake_board(tmp_path / "x.yaml", "power", power=options)


def sleep_text(*, lead=2.0, asleep=21, good=1, bad=0, status=0, said="rtcwake: fine"):
    """The record of a sleep that began at uptime 100 and RTC 1000."""
    return (
        f"start 100.00 rtc 998 success 5 fail 2\n"
        f"before {100 + lead:.2f} rtc 1000 success 5 fail 2\n"
        f"after {100 + lead + asleep:.2f} rtc {1000 + asleep} success {5 + good} fail {2 + bad}\n"
        f"status {status}\nsaid {said}\nfailed dev 1-0040\nfailed step suspend\nend\n"
    )


def log_text(changes=(), first=10.0, ended=15.0, started=0.2):
    """A log in which each rail draws 1 mW at 1 V but for what `changes` say."""
    answers = dict.fromkeys(RAILS, ("1.0 V", "0.001 A")) | dict(changes)
    samples = [(at, rail, *two) for at in (first, ended - 0.1) for rail, two in answers.items()]
    return meter.write(started, ended, samples)


def parse(tmp_path, row="vdd_core", benchmark=DEEP, sleep=None, log=None, **power):
    outputs = {
        lowpower.TEXT_FILE: sleep_text() if sleep is None else sleep,
        meter.JSON_FILE: log_text() if log is None else log,
    }
    return step_of(benchmark.name, row, board=board(tmp_path, **power)).parse(outputs)


def test_a_rail_has_voltage_and_power_and_the_total_is_the_sum(tmp_path):
    log = log_text({"vdd_core": ("750 mV", "4 mA"), "vdd_rtc": ("0.74 V", "10 uW")})
    assert parse(tmp_path, log=log) == [
        Reading("rail_voltage", pytest.approx(0.75)),
        Reading("power", pytest.approx(3.0)),
    ]
    (total,) = parse(tmp_path, TOTAL, log=log)
    assert total == Reading("power", pytest.approx(3.0 + 0.01 + 5))
    (listed,) = parse(tmp_path, TOTAL, rails=["vdd_core", "vdd_rtc"])  # by the board file
    assert listed == Reading("power", pytest.approx(2.0))


NOTHING = ("0.0 V", "0.0 A")


def test_a_rail_that_reads_as_nothing_spoils_the_total_unless_the_mode_switches_it_off(tmp_path):
    with pytest.raises(RefusedOutput, match="rail_voltage of 0 V is not plausible"):
        parse(tmp_path, TOTAL, log=log_text({"vdd_core": NOTHING}))
    with pytest.raises(RefusedOutput, match="power of 0 mW is not plausible"):
        parse(tmp_path, TOTAL, log=log_text({"vdd_rtc": ("1 V", "0 A")}))
    (total,) = parse(tmp_path, TOTAL, RTC, log=log_text({"vdd_core": NOTHING, "vdda_1v8": NOTHING}))
    assert total.value == pytest.approx(5.0)


def test_only_rails_that_the_mode_switches_off_may_be_zero():
    for benchmark, off in ((DEEP, set()), (RTC, {"vdd_core", "vdda_1v8"})):
        for case in benchmark.cases("full"):
            names = [metric.name for metric in benchmark.metrics_of(case)]
            assert names == (["power"] if case.label == TOTAL else ["rail_voltage", "power"])
            for metric in benchmark.metrics_of(case):
                assert (metric.low <= 0) == (case.label in off)


@pytest.mark.parametrize("reason", KNOWN["asleep"])
def test_a_board_that_did_not_sleep_as_asked_gives_no_figure(tmp_path, reason):
    said = KNOWN["asleep"][reason]
    sleep, log = sleep_text(**said.get("sleep", {})), log_text(**said.get("log", {}))
    for row in ("vdd_core", TOTAL):
        with pytest.raises(RefusedOutput, match=reason):
            parse(tmp_path, row, sleep=sleep, log=log)


@given(
    before=st.floats(0, 5),  # from the call of the start command to the board's first mark
    after=st.floats(0, 5),  # from there to its return
    lead=st.floats(0, 20),
    asleep=st.floats(15, 60),
    fraction=st.floats(0, 0.999),  # of an RTC second, when the sleep begins
    first=st.floats(0, 40),
    window=st.floats(0, 40),
)
def test_no_reading_of_an_awake_board_is_let_pass(*, before, after, lead, asleep, fraction, first, window):
    started = before + after
    began, woke = before + lead, before + lead + asleep
    counted = int(fraction + asleep)  # as the RTC, which counts whole seconds, has it
    slept = lowpower.Sleep(lead, counted - 1.0)
    log = meter.Log(started, first, first + window, {}, {}, "")
    try:
        lowpower.check_window(slept, log)
    except RefusedOutput:
        return
    assert started + first >= began
    assert started + first + window <= woke


def test_a_step_leaves_time_to_fall_asleep_and_to_wake(tmp_path):
    step = step_of(DEEP.name, "vdd_core", board=board(tmp_path))
    window = step.window
    assert "rtcwake -s 20 -m mem" in step.command
    assert window.rails == RAILS
    assert window.settle_s > lowpower.LEAD_S
    assert window.settle_s + window.window_s < SLEEP_S
    assert window.quiet_s > lowpower.LEAD_S + SLEEP_S
    assert step.timeout_s > step.expect_s >= window.quiet_s


def test_all_rows_share_one_sleep_and_the_two_modes_none(tmp_path):
    keys = [
        {step_of(benchmark.name, row, board=board(tmp_path)).shared for row in (*RAILS, TOTAL)}
        for benchmark in (DEEP, RTC)
    ]
    assert [len(found) for found in keys] == [1, 1]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("reason", KNOWN["options"])
def test_options_that_make_no_measurement_are_named(tmp_path, reason):
    row, power = KNOWN["options"][reason]
    with pytest.raises(UsageError, match=reason):
        step_of(DEEP.name, row, board=board(tmp_path, **power))


def test_what_a_figure_was_measured_under_is_kept(tmp_path):
    assert DEEP.conditions(board(tmp_path)) == {
        "sleep_command": COMMAND,
        "sleep_s": SLEEP_S,
        "rails": list(RAILS),
    }
