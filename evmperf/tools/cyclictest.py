"""cyclictest of rt-tests 2 (`--json`), under stress-ng's load."""

from __future__ import annotations

import json
from typing import Any

from evmperf.model.errors import RefusedOutput
from evmperf.model.places import STEP_FOLDER

JSON_FILE = "cyclictest.json"
STATISTICS = ("min", "avg", "max")

_ROUNDING = 0.006
"""The average has two decimals, in microseconds."""

_PID = f"{STEP_FOLDER}/stress-ng.pid"


def under_stress(duration: str) -> str:
    """Shell text that measures for `duration` (as 6h, 3s) while stress-ng loads the CPUs.

    The result with its histogram goes into `$OUT/cyclictest.json`.
    """
    return (
        f"stress-ng --cpu-method=all -c 4 >/dev/null 2>&1 & p=$!; echo $p >{_PID}; "
        f"cyclictest -m -Sp80 -D{duration} -h400 -i200 -M -q "
        f'--json="$OUT/{JSON_FILE}" >/dev/null; r=$?; '
        f'kill $p || {{ echo "stress-ng ended before cyclictest did"; r=1; }}; '
        f"wait $p; rm -f {_PID}; exit $r"
    )


END_STRESS = f"if [ -e {_PID} ]; then kill $(cat {_PID}); rm -f {_PID}; fi; true"
"""Shell text that ends the stress-ng of a measurement that was interrupted."""


def latencies(text: str, statistic: str) -> list[float]:
    """The `min`, `avg` or `max` latency of every CPU in microseconds, in the order of `cpus`.

    Raises RefusedOutput for anything but a finished run of one thread for each CPU.
    """
    return [float(thread[statistic]) for thread in _threads(text)]


def by_cpu(text: str, statistic: str) -> dict[int, float]:
    """The same by the number of the CPU."""
    return dict(zip(cpus(text), latencies(text, statistic), strict=True))


def cpus(text: str) -> list[int]:
    """The CPUs that were measured, in rising order; raises RefusedOutput."""
    return [thread["cpu"] for thread in _threads(text)]


def histograms(text: str) -> list[dict[int, int]]:
    """For every CPU, how many wake-ups had which latency (microseconds); raises RefusedOutput.

    What took longer than the histogram is wide is in none of its steps.
    """
    return [
        {int(latency): count for latency, count in thread["histogram"].items()}
        for thread in _threads(text)
    ]


def _threads(text: str) -> list[dict[str, Any]]:
    try:
        document = json.loads(text)
        threads = [document["thread"][str(n)] for n in range(document["num_threads"])]
        whole = document["return_code"] == 0 and len(document["thread"]) == len(threads) > 0
        right = [_is_right(thread) for thread in threads]
        numbers = [thread["cpu"] for thread in threads]
        in_us = document.get("resolution_in_ns", 0) == 0
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RefusedOutput("cyclictest's output is not the JSON it should be", text) from None
    if not whole:
        raise RefusedOutput("cyclictest did not end as it should", text)
    if not in_us:
        raise RefusedOutput("cyclictest counted nanoseconds: run it without -N", text)
    if not all(type(cpu) is int and cpu >= 0 for cpu in numbers) or numbers != sorted(set(numbers)):
        raise RefusedOutput("cyclictest did not have one thread on each CPU", text)
    if not all(right):
        raise RefusedOutput("cyclictest's latencies of a CPU do not go together", text)
    return threads


def _is_right(thread: dict[str, Any]) -> bool:
    steps = {int(latency): count for latency, count in thread["histogram"].items()}
    counts = list(steps.values())
    numbers = [thread[key] for key in (*STATISTICS, "cycles")]
    if not all(type(number) in (int, float) for number in numbers):
        return False
    if not all(type(count) is int and count > 0 for count in counts):
        return False
    low, average, high, cycles = numbers
    beyond = cycles - sum(counts)
    if not (counts and 0 <= low <= average <= high and beyond >= 0):
        return False
    widest = max(steps)
    # What took longer than the histogram is wide is at most the maximum, which one of it is.
    rest = average * cycles - sum(latency * count for latency, count in steps.items())
    error = _ROUNDING * cycles
    longest = high + (beyond - 1) * (widest + 1) if beyond else 0
    return bool(
        min(steps) == low
        and (widest <= high if beyond else widest == high)
        and longest - error <= rest <= beyond * high + error
    )
