"""EEMBC's two suites: CoreMark-PRO by the two final tables of `make certify-all` and their log, which has
more digits, and MultiBench by a workload's final output of MITH, their harness, with numbers as `%8g`.

EEMBC's cert_median.pl marks one row for one context (`median single`), and one for the requested number
(`median best`). The score is the geometric mean of the rates over those of a reference (cert_mark.pl).
"""

import math
import re

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Outputs, output, reading_of
from evmperf.benchmarks.tools._checks import Span, agree, only, over, refuse, refusing, span
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_DECLARED = declared(__file__)
_SHELL = ShellTexts(__file__)
_SCORE = "coremark-pro"
_TABLES_FILE = "coremark-pro.txt"
_LOG_FILE = "certificate.log"

_COLUMNS = {"MultiCore": "best", "SingleCore": "single"}
_ROW = re.compile(r"^(?=.{47} .{10} .{10} .{10}$)(\S+) +(\d+\.\d\d) +(\d+\.\d\d) +(\d+\.\d\d)$")
_PRINTED_SCORE = "CoreMark-PRO"
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
_NAMES = (*_REFERENCE, _PRINTED_SCORE)
_ERROR = re.compile(r"\bERROR\b|\bWARNING: Score\b|^make.*: \*\*\*", re.MULTILINE)
_MEDIAN = re.compile(
    r"^(\d+) +MLT (\S+) +(\d+) +(\d+) +(\d+) +(\d+\.\d{3}) +(\d+) +(\d+\.\d\d) .*"
    r"\bmedian (single|best)$"
)
_LINE = "{:<15}   MLT {:<40} {:>3} {:>3} {:>5} {:>10} {:>10} {:>10} "
"""How results_parser.pl prints a row."""
_LOGGED = re.compile(r"^\d+ +MLT (\S+) +\d+ +\d+ +(\d+) ")

_MITH_FILE = "mith.txt"

_DIGITS = 1.1e-5
"""Relative tolerance of a product of two numbers with six digits."""
_VERIFIED = "executed with verification turned on"
_FAILED = re.compile(r"\b(?:error|fail)\w*\b(?! *[=:] *0+(?:\.0*)?$)", re.IGNORECASE | re.MULTILINE)


def _coremark_pro(cores: str, contexts: int) -> Benchmark:
    """A table of CoreMark-PRO with so many contexts; the run with two serves the table of one, too."""
    column = "MultiCore" if contexts > 1 else "SingleCore"

    def measure(board: Board, case: Case) -> Measure:
        printed = _PRINTED_SCORE if case.label == _SCORE else case.label

        def parse(outputs: Outputs) -> list[Reading]:
            text, log = output(outputs, _TABLES_FILE), outputs.get(_LOG_FILE, "")
            if log:
                return [Reading("perf", logged(log, text, printed, column))]
            value = rate(text, printed, column)
            return [Reading("perf", value, variant="two decimals: no log in builds/*/*/cert")]

        about = {"folder": board.options.system.coremark_pro, "suite": "CoreMark-PRO", "key": "coremark_pro"}
        about |= {"file": _TABLES_FILE, "log_file": _LOG_FILE, "contexts": str(max(contexts, 2))}
        command = _SHELL("coremark_pro", **about)
        return Measure("measure", command, 3600.0, 900, parse=parse, shared=f"{_SCORE} {max(contexts, 2)}")

    def too_few(board: Board, _: Case) -> str:
        have = board.options.system.cores
        fewer = f"{board.file_name} has {have} cores, fewer than {contexts}"
        return fewer if have < contexts and contexts > 2 else ""

    return processor.governed(measure, **_DECLARED[f"coremarkpro{cores}"], lacks=too_few)


def rate(text: str, name: str, column: str) -> float:
    """Workloads a second, or the score (`CoreMark-PRO`), in the column `SingleCore` or `MultiCore`."""
    return float(_printed(text, name, column))


def logged(log: str, text: str, name: str, column: str) -> float:
    """The same with the log's digits; raises RefusedOutput as well for a failed or foreign log."""
    printed = _printed(text, name, column)
    rates = _medians(log, _COLUMNS[column])
    if name == _PRINTED_SCORE:
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
        same = agree(_score_span(values), span(values[_PRINTED_SCORE]))
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


def _multibench(board: Board, case: Case) -> Measure:
    """Each workload of the suite by itself, with the suite's settings: the guides' are unknown."""
    about = {"folder": board.options.system.multibench, "suite": "MultiBench", "key": "multibench"}
    run = _SHELL("multibench", **about, workload=case.label, file=_MITH_FILE)
    parse = reading_of("perf", _MITH_FILE, workloads_per_second, case.label)
    return Measure("measure", run, 1800, 60, parse=parse)


def workloads_per_second(text: str, workload: str) -> float:
    """The rate of one workload (names may differ in capitals), run once without verification."""
    name = re.escape(workload)

    def value(pattern: str) -> str:
        line = re.compile(rf"^-- {pattern}$", re.MULTILINE | re.IGNORECASE)
        return only(line, text, f"the workload {workload} did not run from begin to end once")[0]

    same = value(rf"Workload:{name}=(\d+)") == value(rf"Done:{name}=(\d+)")
    refuse(not same, f"the workload {workload} did not end under the number of its beginning", text)
    refuse(_VERIFIED in text, f"the workload {workload} verified its results: run it with -v0", text)
    refuse(_FAILED.search(text), f"the workload {workload} reports an error", text)
    iterations = int(value(rf"{name}:iterations=(\d+)"))
    took, each, rate = (
        _number(value(rf"{name}:{what}=( *\S+)"), text)
        for what in (r"time\(secs\)", "secs/workload", "workloads/sec")
    )
    refuse(rate <= 0, f"the workload {workload} measured nothing: zero", text)
    off = max(abs(rate * each - 1), abs(rate * took - iterations) / max(iterations, 1))
    refuse(off > _DIGITS, f"the rate of {workload} does not follow from its time", text)
    return rate


def _number(printed: str, text: str) -> float:
    with refusing(f"MITH printed {printed!r} for a number", text):
        value = float(printed)
    refuse(f"{value:8g}" != printed, f"MITH does not print numbers as {printed!r}", text)
    return value


BENCHMARKS = (
    _coremark_pro("", 1),
    _coremark_pro("_two_core", 2),
    _coremark_pro("_four_core", 4),
    _coremark_pro("_eight_core", 8),
    processor.governed(_multibench, **_DECLARED["multibench"]),
)
