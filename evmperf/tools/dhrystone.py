"""Dhrystone 2.1 (`runDhrystone`): its rate, checked by the microseconds of a run and the variables' values
that Weicker's dhry_1.c prints, and its clock.
"""

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts
from evmperf.tools._checks import only, refuse
from evmperf.tools._rounding import agree, over, span

CLOCK_FILE = "cpufreq.txt"
VAX_DHRYSTONES = 1757
"""Dhrystones a second of a VAX 11/780, which is 1 DMIPS."""

_TOLERANCE = 0.05
_RATE = re.compile(r"^Dhrystones per Second: +(\d+\.\d) *$", re.MULTILINE)
_MICROSECONDS = re.compile(r"^Microseconds for one run through Dhrystone: +(\d+\.\d) *$", re.MULTILINE)
_RUNS = re.compile(r"^Execution starts, (\d+) runs through Dhrystone$", re.MULTILINE)
_VARIABLE = re.compile(r"^ *(\S+): +(\S.*)\n +should be: +(\S.*)$", re.MULTILINE)
_CLOCK = re.compile(r"^[A-Za-z][^\d\n]* (\d+(?:\.\d+)?) ?MHz *$", re.MULTILINE)
_KILOHERTZ = range(10_000, 10_000_001)
"""Plausible CPU clocks."""

_SHELL = ShellTexts(__file__)


def watched(command: str) -> str:
    """Shell text that runs `command` and notes cpufreq's clocks (kHz) under its load every second."""
    return _SHELL("watched", command=command, clock_file=CLOCK_FILE)


def per_second(text: str) -> float:
    """Dhrystones a second, from a run whose time and variables are right; raises RefusedOutput."""
    none = "Dhrystone printed no rate, or more than one, or was cut"
    refuse(not text.endswith("\n"), none, text)
    (printed,), (each,) = only(_RATE, text, none), only(_MICROSECONDS, text, none)
    rate = float(printed)
    refuse(rate <= 0, "Dhrystone measured nothing: zero", text)
    same = agree(over(1e6, span(printed)), span(each))
    refuse(not same, f"Dhrystone's {printed} runs a second do not take {each} microseconds each", text)
    runs = _RUNS.search(text)
    for name, value, wanted in _VARIABLE.findall(text):
        if wanted == "Number_Of_Runs + 10":
            wanted = str(int(runs.group(1)) + 10) if runs else ""  # noqa: PLW2901
        if not wanted.startswith("(implementation-dependent)") and value.strip() != wanted:
            raise RefusedOutput(f"Dhrystone computed {name} wrong: {value} instead of {wanted}", text)
    return rate


def clock_mhz(cpufreq: str, text: str) -> float:
    """The clock in MHz, the highest of cpufreq, else the program's; raises RefusedOutput if they differ."""
    lines = cpufreq.splitlines()
    if not all(line.isdigit() and int(line) in _KILOHERTZ for line in lines) or (
        lines and not cpufreq.endswith("\n")
    ):
        raise RefusedOutput("cpufreq's clocks are not numbers, or not those of a CPU", cpufreq)
    highest = max(map(int, lines), default=0) / 1000
    printed = {float(value) for value in _CLOCK.findall(text)}
    if len(printed) > 1 or not (highest or printed):
        raise RefusedOutput("neither cpufreq nor the program gives the clock", text)
    if highest and printed and abs(max(printed) / highest - 1) > _TOLERANCE:
        said = f"the program says {max(printed):g} MHz, cpufreq {highest:g} MHz"
        raise RefusedOutput(f"the clock is not certain: {said}", text)
    return highest or max(printed)
