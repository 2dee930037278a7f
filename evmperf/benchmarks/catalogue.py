"""All benchmarks there are: every module in `evmperf.benchmarks.tables` that has a `BENCHMARK`.

Discovery is by looking, so adding a benchmark is adding a file.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from pathlib import Path

import evmperf.benchmarks.tables
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import ABSENT, FEATURES
from evmperf.model.errors import UsageError


@functools.cache
def benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, in alphabetical order."""
    found: dict[str, Benchmark] = {}
    for module_info in sorted(
        pkgutil.iter_modules(evmperf.benchmarks.tables.__path__), key=lambda info: info.name
    ):
        module = importlib.import_module(f"evmperf.benchmarks.tables.{module_info.name}")
        benchmark = getattr(module, "BENCHMARK", None)
        if benchmark is None:
            continue
        if benchmark.name != module_info.name:
            raise UsageError(
                f"{module.__file__} describes {benchmark.name!r}: name the file like its benchmark"
            )
        found[benchmark.name] = benchmark
    return found


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name; raises UsageError with the nearest names."""
    import difflib  # noqa: PLC0415  # needed for the error only

    try:
        return benchmarks()[name]
    except KeyError:
        near = difflib.get_close_matches(name, benchmarks(), n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `evmperf list` names them"
        raise UsageError(f"there is no benchmark {name!r}{hint}") from None


def board(file: Path) -> Board:
    """Read and check a board file, and what it calls absent against the catalogue.

    Raises UsageError that names the file and the word.
    """
    found = boards.load(file)
    for word in found.options.get(ABSENT, {}):
        boards.check_word(
            file, f"targets.main.options.{ABSENT}", str(word), [*FEATURES, *benchmarks()]
        )
    return found
