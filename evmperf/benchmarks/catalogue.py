"""All benchmarks: `BENCHMARK` or `BENCHMARKS` of each module in `evmperf.benchmarks.tables` and of a lab's
own."""

import functools
import importlib
import importlib.machinery
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import evmperf.benchmarks.tables
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.step import Measure, Step
from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import FEATURES
from evmperf.model.errors import EvmperfError, ToolError, UsageError, meant
from evmperf.model.results import Metric

OWN = Path("benchmarks")
"""A lab's own benchmarks: a folder in the folder that it measures in."""


@functools.cache
def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name, sorted, with those of `benchmarks/` in the current folder; raises UsageError
    for a file of another name, a name in use, or Python's errors.
    """
    by_name: dict[str, Benchmark] = {}
    for module in _modules():
        one = getattr(module, "BENCHMARK", None)
        if one and one.name != module.__name__.rpartition(".")[2]:
            raise UsageError(f"{module.__file__} describes {one.name!r}: name the file like its benchmark")
        for benchmark in (*([one] if one else []), *getattr(module, "BENCHMARKS", ())):
            if benchmark.name in by_name:
                raise UsageError(
                    f"{module.__file__}: evmperf has a benchmark {benchmark.name} already: "
                    f"give this one another name"
                )
            own = module.__name__.startswith(f"{OWN.name}.")
            by_name[benchmark.name] = _guarded(benchmark, Path(str(module.__file__))) if own else benchmark
    return dict(sorted(by_name.items()))


TI_IMAGE = "TI's images have it in /opt/ltp/testcases/bin"
"""Where a program of TI's is found."""


def ti_programs(names: Iterable[Benchmark]) -> dict[str, list[str]]:
    """TI's own programs on the board, each with the tables that it measures in TI's way."""
    tables: dict[str, list[str]] = {}
    for way in names:
        for tool in way.ti_tools:
            if not tool.startswith(("tester ", "net")):
                tables.setdefault(tool, []).append(way.name)
    return tables


@functools.cache
def metrics(name: str, profile: str, case: str) -> tuple[Metric, ...]:
    """The metrics of a row; of a row that is not known the benchmark's, () for an unknown benchmark."""
    entry = benchmarks().get(name)
    rows = {one.label: one.metrics for one in entry.cases(profile)} if entry else {}
    return rows.get(case) or (entry.metrics if entry else ())


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.iter_modules(evmperf.benchmarks.tables.__path__):
        yield importlib.import_module(f"evmperf.benchmarks.tables.{info.name}")
    for file in sorted(OWN.glob("[!_]*.py")):
        name = f"{OWN.name}.{file.stem}"
        loader = importlib.machinery.SourceFileLoader(name, str(file.resolve()))
        module = ModuleType(name)
        module.__file__ = str(file)
        try:
            loader.exec_module(module)
        except Exception as error:
            raise UsageError(f"{_line(file, error)}: {type(error).__name__}: {error}") from error
        yield module


def _guarded(benchmark: Benchmark, file: Path) -> Benchmark:
    """A lab's benchmark, its mistakes with file and line: UsageError of `steps`, ToolError of `parse`."""

    def blamed(function: Callable[..., Any], kind: type[EvmperfError]) -> Callable[..., Any]:
        def call(*given: object) -> object:
            try:
                return function(*given)
            except EvmperfError:
                raise
            except Exception as error:
                raise kind(f"{_line(file, error)}: {type(error).__name__}: {error}") from error

        return call

    def steps(*given: Any) -> Sequence[Step]:
        return [
            replace(step, parse=blamed(step.parse, ToolError)) if isinstance(step, Measure) else step
            for step in benchmark.steps(*given)
        ]

    return replace(benchmark, steps=blamed(steps, UsageError))


def _line(file: Path, error: Exception) -> str:
    """Where in a user's file an error comes from, as FILE:LINE."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == file.resolve()
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"{file}:{line}" if line else str(file)


def benchmark(name: str) -> Benchmark:
    """The benchmark of that name; raises UsageError with the nearest names."""
    try:
        return benchmarks()[name]
    except KeyError:
        hint = meant(name, benchmarks()) or "; `evmperf benchmark list` names them"
        raise UsageError(f"unknown benchmark {name!r}{hint}") from None


def board(file: Path, tester: str = "", options: Path | None = None) -> Board:
    """Read a board file (see `boards.load`), its absent names checked too; raises UsageError."""
    entry = boards.load(file, tester, options)
    for word in entry.options.absent:
        boards.check_word(file, "targets.main.options.absent", word, [*FEATURES, *benchmarks()])
    return entry
