"""What a case is called in LAVA, whose names hold letters, digits, dots, dashes and underscores."""

from __future__ import annotations

import re

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.model.results import Case

SUITE = "evmperf"
"""The test definition of every job; LAVA puts the definition's index in front."""


def case_name(benchmark: Benchmark, case: Case) -> str:
    """The test case that says whether the case was measured."""
    return f"{benchmark.name}.{_plain(case.label)}"


def figure_name(case: str, metric: str) -> str:
    """The test case that carries the measurement of one metric of the case of that name."""
    return f"{case}.{_plain(metric)}"


def unit_name(unit: str) -> str:
    """A unit as one word: LAVA's signals are words with blanks between."""
    return re.sub(r"\s+", "_", unit)


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", label)
