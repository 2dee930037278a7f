"""MITH, the harness of EEMBC's workloads (MultiBench): what a workload prints at its end."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

TEXT_FILE = "mith.txt"


def workloads_per_second(text: str, workload: str) -> float:
    """The rate of one workload; MITH's names differ from the guides' in their capitals.

    Raises RefusedOutput unless the workload began, was timed once, and ended without an error.
    """
    name = re.escape(workload)

    def lines(pattern: str) -> list[str]:
        return re.findall(rf"^-- {pattern}$", text, re.MULTILINE | re.IGNORECASE)

    rates = lines(rf"{name}:workloads/sec= *(\d+(?:\.\d+)?)")
    if not lines(rf"Workload:{name}=\d+") or not lines(rf"Done:{name}=\d+") or len(rates) != 1:
        raise RefusedOutput(f"the workload {workload} did not run from begin to end once", text)
    if re.search(r"\b(?:error|failed)\b", text, re.IGNORECASE):
        raise RefusedOutput(f"the workload {workload} reports an error", text)
    rate = float(rates[0])
    if rate <= 0:
        raise RefusedOutput(f"the workload {workload} measured nothing: zero", text)
    return rate
