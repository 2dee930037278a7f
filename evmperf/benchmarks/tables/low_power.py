"""Low power: the rails of a board that sleeps, by its own record, during all readings; and the kernel's times
to suspend and resume.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile, unlisted, unset
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, MeasurePower, MeterWindow, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools import meter, suspend
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit

RAILS = ("vdd_core", "soc_dvdd_1v8", "soc_dvdd_3v3", "vdda_1v8", "vdd_lpddr4_pmic1", "vdd_rtc", "vdd_rtc_1v8")
"""The rows of the guides' tables of AM62L."""

_OTHER_RAILS = ("vddr_core", "vdd_lpddr4", "vdd_ddr4", "vdd_lpddr4/vdd_ddr4", "vdd_lpddr4_pmic2")
"""The rows that other boards have."""

TOTAL = "Total"

_MARGIN_S = 5
"""Seconds between the last reading and the alarm."""
_ENTRY_S = 1.0
"""Seconds at least between the sleep command and the first reading."""
_WAKE_S = 5
"""Seconds after the alarm in which nothing is typed yet: the board may be waking up."""
_ANSWER_S = suspend.END_S + 30
"""Seconds that the board may take to answer and to end its sleep command."""


def _power_benchmark(mode: str, title: str, *off: str) -> Benchmark:
    """A table of rails in a mode (option MODE_command); rails in `off` may read zero."""
    name, command = f"lpm_power_{mode}", f"{mode}_command"
    rails = (*RAILS, *_OTHER_RAILS)
    own = {**{rail: () if rail in off else _METRICS for rail in rails}, TOTAL: (_POWER,)}

    def conditions(board: Board) -> Mapping[str, Any]:
        return {
            "sleep_command": board.text("power", command),
            "sleep_s": board.options.power.sleep_s,
            "rails": list(board.options.power.rails),
        }

    return Benchmark(
        name=name,
        driver="power",
        title=f"{title} Power Performance",
        section=("Low Power Performance", "Power Performance"),
        metrics=_METRICS_OF_OFF,
        profiles=Profile.both("rail", own, (), own, window_s=(30, 2)),
        place=Place.SLEEP,
        steps=lambda board, case, _: [_sleep(board, case, board.text("power", command), name, off)],
        options=(("power", "rails"), ("power", command)),
        conditions=conditions,
        lacks=_unread,
    )


def _unread(board: Board, case: Case) -> str:
    """Why a row is not measured: the board has no such rail."""
    return "" if case.label == TOTAL else unlisted(board, "power", "rails", case.label)


_VOLTAGE = Metric("rail_voltage", Unit.VOLT, Direction.NONE, "Rail voltage", 0.1, 20.0)
_POWER = Metric("power", Unit.MILLIWATT, Direction.LOWER, "Power", 1e-6, 20_000.0)
_METRICS = (_VOLTAGE, _POWER)
# A meter that reads nothing has an offset, which may be negative.
_METRICS_OF_OFF = (replace(_VOLTAGE, low=-0.1), replace(_POWER, low=-1.0))


def _sleep(board: Board, case: Case, command: str, mode: str, off: Collection[str]) -> MeasurePower:
    rails = board.options.power.rails
    if unknown := set(rails) - {*RAILS, *_OTHER_RAILS}:
        raise UsageError(
            f"{board.file_name}: targets.main.options.power.rails: unknown rails "
            f"{', '.join(sorted(unknown))}; the tables have {', '.join((*RAILS, *_OTHER_RAILS))}"
        )
    if reason := _unread(board, case):
        raise UsageError(reason)
    sleep_s, window_s = board.options.power.sleep_s, int(case.params["window_s"])
    settle_s = sleep_s - window_s - _MARGIN_S
    if settle_s < suspend.LEAD_S + 2 * _ENTRY_S:
        raise UsageError(
            f"{board.file_name}: targets.main.options.power.sleep_s of {sleep_s} is too short "
            f"to read the meter for {window_s} s; "
            f"set at least {window_s + _MARGIN_S + suspend.LEAD_S + 2 * _ENTRY_S:g}"
        )
    quiet_s = suspend.LEAD_S + sleep_s + _WAKE_S

    def parse(outputs: Outputs) -> list[Reading]:
        slept = suspend.parse(output(outputs, suspend.TEXT_FILE), sleep_s)
        log = meter.parse(output(outputs, meter.JSON_FILE))
        check_window(slept, log)
        if case.label != TOTAL:
            return readings(rail_voltage=log.voltage(case.label), power=log.power(case.label))
        for rail in rails:
            # A sum in which a rail is missing, or reads as nothing, is no sum.
            voltage, power = _METRICS_OF_OFF if rail in off else _METRICS
            voltage.check(log.voltage(rail), log.raw)
            power.check(log.power(rail), log.raw)
        return [Reading("power", sum(log.power(rail) for rail in rails))]

    start, shared = suspend.start(command.replace("{seconds}", str(sleep_s))), f"{mode} {window_s}"
    window = MeterWindow(rails, settle_s, window_s, quiet_s, suspend.check(), _ANSWER_S)
    times_s = (quiet_s + _ANSWER_S, quiet_s + 1)
    return MeasurePower("sleep", start, *times_s, parse=parse, shared=shared, window=window)


def check_window(slept: suspend.Sleep, log: meter.Log) -> None:
    """Raise RefusedOutput unless the board slept during all readings, with its clocks at their worst."""
    if log.first_s < slept.lead_s + _ENTRY_S:
        reason = f"the meter read from {log.first_s:.1f} s on, but the board went to sleep after"
        raise RefusedOutput(f"{reason} {slept.lead_s:.1f} s only", log.raw)
    awake_s = slept.lead_s + slept.asleep_s - log.started_s
    if log.ended_s > awake_s:
        reason = f"the meter read until {log.ended_s:.1f} s, but the board may have been awake from"
        raise RefusedOutput(f"{reason} {awake_s:.1f} s on", log.raw)


_MODES = {
    "Deep Sleep": "deep_sleep_command",
    "RTC Only + DDR": "rtc_ddr_command",
    "MCU Only": "mcu_only_command",
    "I/O Only + DDR": "io_ddr_command",
}
"""The options that have the modes' commands."""


def _resume_steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
    sleep_s = int(case.params["sleep_s"])
    command = board.text("power", _MODES[case.label]).replace("{seconds}", str(sleep_s))

    def parse(outputs: Outputs) -> list[Reading]:
        down_ms, up_ms = suspend.latencies(output(outputs, suspend.PHASES_FILE))
        return readings(suspend_latency=down_ms, resume_latency=up_ms)

    sleep = suspend.reported(command)
    return [
        Measure(f"sleep{number}", sleep, sleep_s + 120, sleep_s + 2, parse=parse, repetition=number)
        for number in range(plan.repeats)
    ]


BENCHMARKS = (
    _power_benchmark("deep_sleep", "Deep Sleep"),
    _power_benchmark("rtc_ddr", "RTC Only + DDR", "vdd_core", "vdda_1v8"),
    _power_benchmark("mcu_only", "MCU Only"),
    _power_benchmark("io_ddr", "IO Only + DDR", "vdd_core", "vddr_core"),
    Benchmark(
        **declared(__file__)["lpm_resume_latency"],
        steps=_resume_steps,
        lacks=lambda board, case: unset(board, "power", _MODES[case.label]),
    ),
)
