"""Low power: the rails of a board that sleeps during all readings. The sleep, in the background, is proven by
the RTC, which runs on, and the counters of /sys/power/suspend_stats (Documentation/ABI/testing/sysfs-power).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile, unlisted
from evmperf.benchmarks.step import MeasurePower, MeterWindow, Outputs, output, readings
from evmperf.benchmarks.tools import meter
from evmperf.benchmarks.tools._checks import refuse, whole
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput, UsageError
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

RAILS = ("vdd_core", "soc_dvdd_1v8", "soc_dvdd_3v3", "vdda_1v8", "vdd_lpddr4_pmic1", "vdd_rtc", "vdd_rtc_1v8")
"""The rows of the guides' tables of AM62L."""

_OTHER_RAILS = ("vddr_core", "vdd_lpddr4", "vdd_ddr4", "vdd_lpddr4/vdd_ddr4", "vdd_lpddr4_pmic2")
"""The rows that other boards have."""

TOTAL = "Total"

TEXT_FILE = "suspend.txt"
LEAD_S = 2
"""Seconds between starting the command and the sleep, in which the prompt must come back."""

_STATE = f"{STEP_FOLDER}/sleep"
_END_S = 60
"""Seconds that a sleep command may take to end once the board answers again."""
_LATE_S = 30
"""Seconds that waking up may take."""
_APART_S = 3.0
"""Tolerance in seconds between two clocks, one of which counts whole seconds and is read later."""
_MARGIN_S = 5
"""Seconds between the last reading and the alarm."""
_ENTRY_S = 1.0
"""Seconds at least between the sleep command and the first reading."""
_WAKE_S = 5
"""Seconds after the alarm in which nothing is typed yet: the board may be waking up."""
_ANSWER_S = _END_S + 30
"""Seconds that the board may take to answer and to end its sleep command."""

_SHELL = ShellTexts(__file__)
_COUNTS = r"(\d+\.\d+) rtc (\d+) success (\d+) fail (\d+)\n"
_TEXT = re.compile(
    rf"start {_COUNTS}before {_COUNTS}after {_COUNTS}status (\d+)\n"
    r"((?:said [^\n]*\n)*)failed dev ([^\n]*)\nfailed step ([^\n]*)\nend\n"
)


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
        profiles=Profile.crossed({"rail": own}, {}, own, window_s=(30, 2)),
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
    if settle_s < LEAD_S + 2 * _ENTRY_S:
        raise UsageError(
            f"{board.file_name}: targets.main.options.power.sleep_s of {sleep_s} is too short "
            f"to read the meter for {window_s} s; "
            f"set at least {window_s + _MARGIN_S + LEAD_S + 2 * _ENTRY_S:g}"
        )
    quiet_s = LEAD_S + sleep_s + _WAKE_S

    def parse(outputs: Outputs) -> list[Reading]:
        sleep = slept(output(outputs, TEXT_FILE), sleep_s)
        log = meter.parse(output(outputs, meter.JSON_FILE))
        check_window(sleep, log)
        if case.label != TOTAL:
            return readings(rail_voltage=log.voltage(case.label), power=log.power(case.label))
        for rail in rails:
            # A sum in which a rail is missing, or reads as nothing, is no sum.
            voltage, power = _METRICS_OF_OFF if rail in off else _METRICS
            voltage.check(log.voltage(rail), log.raw)
            power.check(log.power(rail), log.raw)
        return [Reading("power", sum(log.power(rail) for rail in rails))]

    # On a line of its own, as it may end with a comment.
    sleeping = command.replace("{seconds}", str(sleep_s)) + "\n"
    start = _SHELL("start", state=_STATE, lead_s=LEAD_S, sleep_command=sleeping)
    check = _SHELL("check", state=_STATE, end_s=_END_S, text_file=TEXT_FILE)
    window = MeterWindow(rails, settle_s, window_s, quiet_s, check, _ANSWER_S)
    times_s, shared = (quiet_s + _ANSWER_S, quiet_s + 1), f"{mode} {window_s}"
    return MeasurePower("sleep", start, *times_s, parse=parse, shared=shared, window=window)


@dataclass(frozen=True)
class Sleep:
    """One sleep: seconds to the sleep command, and its least duration on the RTC (whole seconds)."""

    lead_s: float
    asleep_s: float


def slept(text: str, wanted_s: int) -> Sleep:
    """The sleep in `text`; raises RefusedOutput without a sleep, or for less than `wanted_s`."""
    match = whole(_TEXT, text, "the record of the sleep is not whole")
    up0, _, good0, _ = match.groups()[0:4]
    up1, rtc1, good1, bad1 = match.groups()[4:8]
    up2, rtc2, good2, bad2 = match.groups()[8:12]
    status, messages, device, step = match.groups()[12:16]
    lines = [line.removeprefix("said ").strip() for line in messages.splitlines()]
    why = "; ".join([line for line in lines if line][-2:])
    where = " ".join(word for word in (step.strip(), device.strip()) if word)
    messages = f"the board refused to sleep ({where or 'no device named'}; {why or 'no message'})"
    refuse(int(bad2) != int(bad1), messages, text)
    refuse(int(status), f"the sleep command ended with status {status}: {why or 'no message'}", text)
    sleeps = int(good1) - int(good0), int(good2) - int(good1)
    refuse(sleeps != (0, 1), f"the kernel counts {sum(sleeps)} sleeps instead of one", text)
    asleep = int(rtc2) - int(rtc1)
    refuse(asleep < wanted_s, f"the board slept for {asleep} s instead of {wanted_s} s", text)
    # The kernel's clock includes the sleep or stops during it; otherwise a clock was set.
    by_kernel = float(up2) - float(up1)
    messages = f"the board slept for {asleep} s on its RTC and {by_kernel:g} s on its kernel's clock"
    jumped = asleep > wanted_s + _LATE_S or min(abs(by_kernel - asleep), by_kernel) > _APART_S
    refuse(jumped, f"{messages}: one of them jumped", text)
    return Sleep(float(up1) - float(up0), asleep - 1.0)


def check_window(sleep: Sleep, log: meter.Log) -> None:
    """Raise RefusedOutput unless the board slept during all readings, with its clocks at their worst."""
    if log.first_s < sleep.lead_s + _ENTRY_S:
        reason = f"the meter read from {log.first_s:.1f} s on, but the board went to sleep after"
        raise RefusedOutput(f"{reason} {sleep.lead_s:.1f} s only", log.raw)
    awake_s = sleep.lead_s + sleep.asleep_s - log.started_s
    if log.ended_s > awake_s:
        reason = f"the meter read until {log.ended_s:.1f} s, but the board may have been awake from"
        raise RefusedOutput(f"{reason} {awake_s:.1f} s on", log.raw)


BENCHMARKS = (
    _power_benchmark("deep_sleep", "Deep Sleep"),
    _power_benchmark("rtc_ddr", "RTC Only + DDR", "vdd_core", "vdda_1v8"),
    _power_benchmark("mcu_only", "MCU Only"),
    _power_benchmark("io_ddr", "IO Only + DDR", "vdd_core", "vddr_core"),
)
