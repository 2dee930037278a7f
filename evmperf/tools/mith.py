"""MITH, the harness of EEMBC's workloads (MultiBench): a workload's final output.

Numbers are printed with `%8g`: six digits, without trailing zeros, right in eight columns.
"""

import re

from evmperf.model.errors import RefusedOutput

TEXT_FILE = "mith.txt"

_DIGITS = 1.1e-5
"""Relative tolerance of a product of two numbers with six digits."""
_VERIFIED = "executed with verification turned on"
_FAILED = re.compile(r"\b(?:error|fail)\w*\b(?! *[=:] *0+(?:\.0*)?$)", re.IGNORECASE | re.MULTILINE)


def workloads_per_second(text: str, workload: str) -> float:
    """The rate of one workload; MITH's names differ from the guides' in their capitals.

    Raises RefusedOutput unless the workload began, was timed once, and ended without an error and
    without verifying, which is slower; and unless rate, time and iterations agree.
    """
    name = re.escape(workload)

    def only(pattern: str) -> str:
        found = re.findall(rf"^-- {pattern}$", text, re.MULTILINE | re.IGNORECASE)
        if len(found) != 1:
            raise RefusedOutput(f"the workload {workload} did not run from begin to end once", text)
        return str(found[0])

    if only(rf"Workload:{name}=(\d+)") != only(rf"Done:{name}=(\d+)"):
        raise RefusedOutput(f"the workload {workload} did not end as the one that began", text)
    if _VERIFIED in text:
        raise RefusedOutput(f"the workload {workload} verified its results: run it with -v0", text)
    if _FAILED.search(text):
        raise RefusedOutput(f"the workload {workload} reports an error", text)
    iterations = int(only(rf"{name}:iterations=(\d+)"))
    took, each, rate = (
        _number(only(rf"{name}:{what}=( *\S+)"), text)
        for what in (r"time\(secs\)", "secs/workload", "workloads/sec")
    )
    if rate <= 0:
        raise RefusedOutput(f"the workload {workload} measured nothing: zero", text)
    if max(abs(rate * each - 1), abs(rate * took - iterations) / max(iterations, 1)) > _DIGITS:
        raise RefusedOutput(f"the rate of {workload} does not follow from its time", text)
    return rate


def _number(printed: str, text: str) -> float:
    try:
        value = float(printed)
    except ValueError:
        raise RefusedOutput(f"MITH printed {printed!r} for a number", text) from None
    if f"{value:8g}" != printed:
        raise RefusedOutput(f"MITH does not print numbers as {printed!r}", text)
    return value
