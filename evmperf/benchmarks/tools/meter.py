"""The log of a meter's answers for the board's rails: `started_s` is how long the step's command took to
return, `ended_s` when the last reading was done, `samples` have time, rail, and two answers with units
(voltage; current or power). Times are seconds since the command returned.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.model.errors import RefusedOutput

JSON_FILE = "meter.json"

Sweep = tuple[float, str, str, str]
"""Time, rail, voltage, and current or power."""

_OVERLOAD = 9e37
"""SCPI-99 (21.6.1, 7.2.1.4): 9.9E37 is infinity, 9.91E37 is "not a number"."""

_ANSWER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\d\.\d+[eE][+-]?\d+)) (\w+)")
"""A number with an exponent has one digit before its point (IEEE 488.2, NR3, as meters print it)."""
_VOLTS = {"V": 1.0, "mV": 1e-3}
_AMPERES = {"A": 1.0, "mA": 1e-3}
_WATTS = {"W": 1.0, "uW": 1e-6}


@dataclass(frozen=True)
class Log:
    """The readings of a window: volts and milliwatts by rail, one of each a sample."""

    started_s: float
    first_s: float
    ended_s: float
    volts: dict[str, list[float]]
    milliwatts: dict[str, list[float]]
    raw: str

    def voltage(self, rail: str) -> float:
        """Mean voltage of a rail in V."""
        return self._mean(self.volts, rail)

    def power(self, rail: str) -> float:
        """Mean power of a rail in mW: of voltage times current of each sample, or of the sensor's power."""
        return self._mean(self.milliwatts, rail)

    def _mean(self, values: dict[str, list[float]], rail: str) -> float:
        refuse(rail not in values, f"the meter did not read the rail {rail}", self.raw)
        return sum(values[rail]) / len(values[rail])


def write(started_s: float, ended_s: float, samples: Sequence[Sweep]) -> str:
    """The text that `parse` takes, one sample a line."""
    lines = ",\n".join(json.dumps([round(time_s, 3), *rest]) for time_s, *rest in samples)
    return f'{{"started_s": {started_s:.3f}, "ended_s": {ended_s:.3f}, "samples": [\n{lines}\n]}}\n'


def parse(text: str) -> Log:
    """The log in `text`; raises RefusedOutput for a cut log, an overload, or an answer without a unit."""
    with refusing("the meter's log is not the JSON expected", text):
        data = json.loads(text)
        times = [float(data["started_s"]), float(data["ended_s"])]
        samples = [(float(at), str(rail), str(v), str(i)) for at, rail, v, i in data["samples"]]
    refuse(not samples, "the meter's log holds no reading", text)
    volts: dict[str, list[float]] = {}
    milliwatts: dict[str, list[float]] = {}
    units: dict[str, tuple[str, str]] = {}
    for _, rail, voltage, other in samples:
        unit = voltage.rpartition(" ")[2], other.rpartition(" ")[2]
        refuse(units.setdefault(rail, unit) != unit, f"the meter changed its units for {rail}", text)
        volt = _number(rail, voltage, _VOLTS, text)
        volts.setdefault(rail, []).append(volt)
        milliwatts.setdefault(rail, []).append(_watts(rail, volt, other, text) * 1000)
    counts = {len(values) for values in volts.values()}
    refuse(len(counts) > 1, "the meter read some rails more often than others", text)
    return Log(times[0], samples[0][0], times[1], volts, milliwatts, text)


def total(reading: Mapping[str, tuple[str, str]]) -> float:
    """The sum of some rails in W; raises RefusedOutput for an overload, or an answer without a unit."""
    volts = {rail: _number(rail, voltage, _VOLTS, "") for rail, (voltage, _) in reading.items()}
    return sum(_watts(rail, volt, reading[rail][1], "") for rail, volt in volts.items())


def _watts(rail: str, volt: float, other: str, text: str) -> float:
    """The power of a rail by the meter's second answer, a current or the power itself."""
    if other.rpartition(" ")[2] in _WATTS:
        return _number(rail, other, _WATTS, text)
    return _number(rail, other, _AMPERES, text) * volt


def _number(rail: str, answer: str, units: dict[str, float], text: str) -> float:
    match = _ANSWER.fullmatch(answer)
    if not match or match.group(2) not in units:
        raise RefusedOutput(f"the meter's answer for {rail} is no reading: {answer[:80]!r}", text)
    value = float(match.group(1))
    refuse(abs(value) >= _OVERLOAD, f"the meter is overloaded on {rail} ({answer})", text)
    return value * units[match.group(2)]
