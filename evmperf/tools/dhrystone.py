"""Dhrystone 2.1 (`runDhrystone`): its rate, and the clock it ran at.

Its last line is `Dhrystones per Second:  VALUE`, as Weicker's dhry_1.c prints it.
"""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

CLOCK_FILE = "cpufreq.txt"
VAX_DHRYSTONES = 1757
"""Dhrystones a second of a VAX 11/780, which is 1 DMIPS."""

_TOLERANCE = 0.05
_RATE = re.compile(r"Dhrystones per Second: +(\d+(?:\.\d+)?) *$", re.MULTILINE)
_CLOCK = re.compile(r"(\d+(?:\.\d+)?) *MHz")

_CUR_FREQ = "/sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq"


def watched(command: str) -> str:
    """Shell text that runs `command` and notes meanwhile, once a second, cpufreq's clocks in kHz.

    A governor slows the clock of an idle board: only what is read under load is the benchmark's.
    """
    return (
        f"{{ n=0; while [ $n -lt 900 ]; do cat {_CUR_FREQ}; sleep 1; n=$((n+1)); done; }} "
        f'>"$OUT/{CLOCK_FILE}" 2>/dev/null & w=$!; {command}; r=$?; '
        f"kill $w; wait $w 2>/dev/null; exit $r"
    )


def per_second(text: str) -> float:
    """Dhrystones a second; raises RefusedOutput unless there is exactly one whole such line."""
    found = _RATE.findall(text)
    if len(found) != 1 or not text.endswith("\n"):
        raise RefusedOutput("Dhrystone printed no rate, or more than one, or was cut", text)
    rate = float(found[0])
    if rate <= 0:
        raise RefusedOutput("Dhrystone measured nothing: zero", text)
    return rate


def clock_mhz(cpufreq: str, text: str) -> float:
    """The clock in MHz: the highest that cpufreq showed, or what the program says without one.

    Raises RefusedOutput when the two contradict each other (AM62L's guides publish a 400 MHz clock
    for a part of 1.4 GHz), and when neither says anything.
    """
    try:
        highest = max((int(line) for line in cpufreq.split()), default=0) / 1000
    except ValueError:
        raise RefusedOutput("cpufreq's clocks are not numbers", cpufreq) from None
    printed = {float(value) for value in _CLOCK.findall(text)}
    if len(printed) > 1 or not (highest or printed):
        raise RefusedOutput("neither cpufreq nor the program says what the clock is", text)
    if highest and printed and abs(max(printed) / highest - 1) > _TOLERANCE:
        said = f"the program says {max(printed):g} MHz, cpufreq {highest:g} MHz"
        raise RefusedOutput(f"the clock is not certain: {said}", text)
    return highest or max(printed)
