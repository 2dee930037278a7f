"""Wake-ups of the real-time kernel while stress-ng loads its CPUs, by cyclictest of rt-tests 2 (`--json`).

One run serves the three rows. Its histogram stays as raw output and is drawn in the report.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import CleanUp, Measure, Outputs, Plan, Step, output
from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Direction, Metric, Reading, Result
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_CPUS = 8
"""As many as the largest EVM has."""
_STATISTICS = {"min": "Minimum (usec)", "avg": "Average (usec)", "max": "Maximum (usec)"}
_JSON_FILE = "cyclictest.json"

_ROUNDING = 0.006
"""The average has two decimals, in microseconds."""
_ASKED = re.compile(r" (?:-D|--duration[= ])(\d+)([smhd]?)(?= |$)")
_INTERVAL = re.compile(r" (?:-i|--interval[= ])(\d+)(?= |$)")
_BINS = re.compile(r" (?:-h|--histogram[= ])(\d+)(?= |$)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_START_S = 0.2
"""Threads begin one after the other, and end together."""
_MISSING = 1e-3
"""Part of the requested time that a thread may miss because of rounding."""

_PID = f"{STEP_FOLDER}/stress-ng.pid"
_SHELL = ShellTexts(__file__)


def _steps(_: Board, case: Case, __: Plan) -> list[Step]:
    duration, statistic = str(case.params["duration"]), str(case.params["statistic"])
    seconds, shared = int(duration[:-1]) * _SECONDS[duration[-1]], f"cyclictest {duration}"
    stress = _SHELL("under_stress", pid=_PID, duration=duration, json_file=_JSON_FILE)

    def parse(outputs: Outputs) -> list[Reading]:
        text = output(outputs, _JSON_FILE)
        by_cpu = zip(cpus(text), latencies(text, statistic, seconds), strict=True)
        return [Reading(f"latency_cpu{cpu}", latency) for cpu, latency in by_cpu]

    return [
        Measure("measure", stress, seconds * 1.1 + 60, seconds + 2, parse=parse, shared=shared),
        # Of a measurement that was interrupted.
        CleanUp("clean-up", _SHELL("end", pid=_PID), 30, 0.5),
    ]


def _profile(duration: str) -> Profile:
    rows = (
        (label, {"statistic": statistic, "duration": duration}) for statistic, label in _STATISTICS.items()
    )
    return Profile(tuple(Case(*row) for row in rows))


def latencies(text: str, statistic: str, seconds: int | None = None) -> list[float]:
    """The `min`, `avg` or `max` latency of every CPU in microseconds, in the order of `cpus`; raises
    RefusedOutput unless each measured for the whole time, `seconds`: cyclictest ends early with status 0.
    """
    return [float(thread[statistic]) for thread in _threads(text, seconds)]


def cpus(text: str) -> list[int]:
    """The CPUs that were measured, in rising order; raises RefusedOutput."""
    return [thread["cpu"] for thread in _threads(text)]


def histograms(text: str) -> list[dict[int, int]]:
    """Wake-ups by latency (microseconds) for every CPU, within the range; raises RefusedOutput."""
    return [thread["histogram"] for thread in _threads(text)]


def _threads(text: str, seconds: int | None = None) -> list[dict[str, Any]]:
    with refusing("cyclictest's output is not the JSON expected", text):
        document = json.loads(text)
        threads = [document["thread"][str(n)] for n in range(document["num_threads"])]
        whole = document["return_code"] == 0 and len(document["thread"]) == len(threads) > 0
        for thread in threads:
            thread["histogram"] = {int(us): count for us, count in thread["histogram"].items()}
        numbers = [thread["cpu"] for thread in threads]
        in_us = document.get("resolution_in_ns", 0) == 0
        asked, interval, bins = (p.search(document["cmdline:"]) for p in (_ASKED, _INTERVAL, _BINS))
        right = [_is_right(thread, int(bins[1]) if bins else 0) for thread in threads]
    refuse(not whole, "cyclictest ended with an error", text)
    refuse(not in_us, "cyclictest counted nanoseconds: run it without -N", text)
    one_each = all(type(cpu) is int and cpu >= 0 for cpu in numbers) and numbers == sorted(set(numbers))
    refuse(not one_each, "cyclictest did not run one thread on each CPU", text)
    refuse(not all(right), "cyclictest's latencies of a CPU contradict each other", text)
    if not asked or not interval or int(interval[1]) <= 0:
        raise RefusedOutput("cyclictest's command line lacks its duration or interval (-D, -i)", text)
    duration_s = int(asked[1]) * _SECONDS[asked[2]]
    refuse(
        seconds not in (None, duration_s),
        f"cyclictest was to run for {duration_s} s, not for {seconds} s",
        text,
    )
    for thread in threads:
        least, most = _lasted_s(thread, int(interval[1]))
        early, late = (
            most < duration_s * (1 - _MISSING) - _START_S,
            least > duration_s * (1 + _MISSING) + _START_S,
        )
        refuse(early, f"cyclictest ended after {most:.1f} s instead of {duration_s} s", text)
        refuse(late, f"cyclictest counts {least:.1f} s of cycles in {duration_s} s", text)
    return threads


def _lasted_s(thread: dict[str, Any], interval_us: int) -> tuple[float, float]:
    """How long a thread measured at least and at most: a cycle takes an interval, and a wake-up
    that is later than the next one's time leaves that out (cyclictest.c, timerthread).
    """
    steps = thread["histogram"]
    beyond_us = thread["avg"] * thread["cycles"] - sum(us * n for us, n in steps.items())
    left_out = sum((us + 1) // interval_us * n for us, n in steps.items())
    error_us = _ROUNDING * thread["cycles"]
    least_us = thread["cycles"] * interval_us
    return least_us / 1e6, (least_us + left_out * interval_us + max(0.0, beyond_us + error_us)) / 1e6


def _is_right(thread: dict[str, Any], bins: int) -> bool:
    """Whether a thread's statistics are those of its histogram, of so many bins of 1 us from 0 on."""
    steps = thread["histogram"]
    counts = list(steps.values())
    numbers = [thread[key] for key in (*_STATISTICS, "cycles")]
    whole = all(type(count) is int and count > 0 for count in counts)
    if not whole or not all(type(number) in (int, float) for number in numbers):
        return False
    low, average, high, cycles = numbers
    beyond, widest = cycles - sum(counts), max(steps, default=0)
    if not (counts and 0 <= low <= average <= high and beyond >= 0):
        return False
    # Each latency beyond the histogram is longer than it, and at most the maximum, which one equals.
    rest = average * cycles - sum(latency * count for latency, count in steps.items())
    error = _ROUNDING * cycles
    longest = high + (beyond - 1) * bins if beyond else 0
    return bool(
        min(steps) == low
        and widest < bins
        and (bins <= high if beyond else widest == high)
        and longest - error <= rest <= beyond * high + error
    )


def wake_ups(results: Iterable[Result], folder: Path) -> Iterator[list[dict[int, int]]]:
    """Counts by latency (microseconds) per CPU of each of the tool's files below a run's folder, each once;
    missing or damaged files are left out.
    """
    raw = (name for result in results if result.samples for name in result.raw)
    for name in dict.fromkeys(name for name in raw if name.endswith(_JSON_FILE)):
        try:
            if (folder / name).resolve().is_relative_to(folder.resolve()):
                yield histograms((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RefusedOutput):
            continue


BENCHMARK = Benchmark(
    **declared(__file__)["cyclictest_stress"],
    metrics=tuple(
        Metric(f"latency_cpu{cpu}", Unit.MICROSECOND, Direction.LOWER, f"CPU {cpu}", 0.5, 1e6, cpu == 0)
        for cpu in range(_CPUS)
    ),
    profiles={"full": _profile("6h"), "quick": _profile("3s")},
    steps=_steps,
)
