"""One step of one row of a benchmark."""

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.step import Measure
from evmperf.boards import board as boards

AM64X = boards.load(boards.ENV_DIR / "am64x.yaml")


def step_of(name, label="", step="", profile="quick", board=AM64X):
    """A step by its name, by default the first that measures, of a row, by default the first."""
    benchmark = catalogue.benchmark(name)
    case = next(case for case in benchmark.cases(profile) if label in ("", case.label))
    steps = benchmark.declared_steps(board, case, profile)
    return next(one for one in steps if one.name == step or (not step and isinstance(one, Measure)))
