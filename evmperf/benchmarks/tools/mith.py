"""MITH, the harness of EEMBC's workloads (MultiBench): a workload's final output, with numbers as `%8g`."""

import re

from evmperf.benchmarks.tools._checks import only, refuse, refusing

TEXT_FILE = "mith.txt"

_DIGITS = 1.1e-5
"""Relative tolerance of a product of two numbers with six digits."""
_VERIFIED = "executed with verification turned on"
_FAILED = re.compile(r"\b(?:error|fail)\w*\b(?! *[=:] *0+(?:\.0*)?$)", re.IGNORECASE | re.MULTILINE)


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
