"""CoreMark-PRO: the two final tables of `make certify-all`, and the log behind them, which has more digits.

EEMBC's cert_median.pl marks one row for one context (`median single`), and one for the requested number
(`median best`). The score is the geometric mean of the rates over those of a reference (cert_mark.pl).
"""

import math
import re

from evmperf.benchmarks.tools._checks import Span, agree, over, refuse, span
from evmperf.model.errors import RefusedOutput

TEXT_FILE = "coremark-pro.txt"
LOG_FILE = "certificate.log"

_COLUMNS = {"MultiCore": "best", "SingleCore": "single"}
_ROW = re.compile(r"^(?=.{47} .{10} .{10} .{10}$)(\S+) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d\d)$")
_SCORE = "CoreMark-PRO"
_REFERENCE = {
    "cjpeg-rose7-preset": 40.3438,
    "core": 0.2855,
    "linear_alg-mid-100x100-sp": 38.5624,
    "loops-all-mid-10k-sp": 0.87959,
    "nnet_test": 1.45853,
    "parser-125k": 4.81116,
    "radix2-big-64k": 99.6587,
    "sha-test": 48.5201,
    "zip-test": 21.3618,
}
"""Rates of the reference with a score of 1000, in workloads per second."""
_NAMES = (*_REFERENCE, _SCORE)
_ERROR = re.compile(r"\bERROR\b|\bWARNING: Score\b|^make.*: \*\*\*", re.MULTILINE)
_MEDIAN = re.compile(
    r"^(\d+) +MLT (\S+) +(\d+) +(\d+) +(\d+) +(\d+\.\d{3}) +(\d+) +(\d+\.\d\d) .*"
    r"\bmedian (single|best)$"
)
_LINE = "{:<15}   MLT {:<40} {:>3} {:>3} {:>5} {:>10} {:>10} {:>10} "
"""How results_parser.pl prints a row."""
_LOGGED = re.compile(r"^\d+ +MLT (\S+) +\d+ +\d+ +(\d+) ")


def rate(text: str, name: str, column: str) -> float:
    """Workloads a second, or the score (`CoreMark-PRO`), in the column `SingleCore` or `MultiCore`."""
    return float(_printed(text, name, column))


def logged(log: str, text: str, name: str, column: str) -> float:
    """The same with the log's digits; raises RefusedOutput as well for a failed or foreign log."""
    printed = _printed(text, name, column)
    rates = _medians(log, _COLUMNS[column])
    if name == _SCORE:
        value = _score(rates)
        # Its table is of rates with the log's two decimals.
        same = agree(_score_span({key: f"{rate:.2f}" for key, rate in rates.items()}), span(printed))
    else:
        value = rates[name]
        same = agree((value * (1 - 1e-6), value * (1 + 1e-6)), span(printed))
    refuse(not same, f"CoreMark-PRO's log does not match its table: {name}", log + text)
    return value


def _printed(text: str, name: str, column: str) -> str:
    if error := _ERROR.search(text):
        line = text[text.rfind("\n", 0, error.start()) + 1 :].partition("\n")[0]
        raise RefusedOutput(f"CoreMark-PRO reports an error: {line[:120]}", text)
    rows = [match.groups() for line in text.splitlines() if (match := _ROW.match(line))]
    whole = tuple(row[0] for row in rows) == _NAMES and text.endswith("\n")
    refuse(not whole, "CoreMark-PRO's tables do not have their ten rows", text)
    heads = text.count("MultiCore SingleCore")
    refuse(heads != len(_COLUMNS), "CoreMark-PRO's tables have other columns", text)
    for row, multi, single, scaling in rows:
        refuse(not min(float(multi), float(single)) > 0, "CoreMark-PRO measured nothing: zero", text)
        scales = agree(over(span(multi), span(single)), span(scaling))
        refuse(not scales, f"CoreMark-PRO's {row} does not scale by {scaling}", text)
    columns = {name: {row[0]: row[n] for row in rows} for n, name in enumerate(_COLUMNS, 1)}
    for values in columns.values():
        same = agree(_score_span(values), span(values[_SCORE]))
        refuse(not same, "CoreMark-PRO's score does not match its workloads", text)
    return columns[column][name]


def _score(rates: dict[str, float]) -> float:
    logarithms = [math.log(max(rates[name], 1e-9) / _REFERENCE[name]) for name in _REFERENCE]
    return 1000 * math.exp(sum(logarithms) / len(logarithms))


def _score_span(printed: dict[str, str]) -> Span:
    low, high = (_score({name: span(printed[name])[side] for name in _REFERENCE}) for side in (0, 1))
    return low, high


def _medians(log: str, which: str) -> dict[str, float]:
    """Workloads a second by workload: iterations over seconds, which the log's own rate follows."""
    rates: dict[str, float] = {}
    for line in log.splitlines():
        row = _LOGGED.match(line)
        refuse(row and int(row[2]), f"CoreMark-PRO's {row and row[1]} failed", log)
        median = _MEDIAN.match(line)
        if not median or median.group(9) != which:
            continue
        _, name, _, _, _, seconds, iterations, printed, _ = median.groups()
        columns = line.startswith(_LINE.format(*median.groups()))
        refuse(not columns, f"CoreMark-PRO's row of {name} does not have its columns", log)
        refuse(name in rates, f"CoreMark-PRO's log has {name} more than once", log)
        same = agree(over(int(iterations), span(seconds)), span(printed))
        refuse(not same, f"CoreMark-PRO's {name} does not have the rate {printed}", log)
        rates[name] = int(iterations) / float(seconds)
    refuse(set(rates) != set(_REFERENCE), "CoreMark-PRO's log does not have its nine workloads", log)
    return rates
