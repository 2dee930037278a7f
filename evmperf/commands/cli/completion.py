"""What a shell completes: boards, runs, benchmarks, cases, metrics. `eval "$(register-python-argcomplete
evmperf)"` in ~/.bashrc or ~/.zshrc enables it.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import argcomplete

from evmperf.benchmarks import catalogue
from evmperf.boards import board
from evmperf.commands.cli.help import pages

_Completer = Callable[..., Iterable[str]]


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks, and end; nothing where none does."""
    for command, action in _arguments(parser, ""):
        completer = _COMPLETERS.get(f"{command}.{action.dest}") or _COMPLETERS.get(action.dest)
        if completer and action.type is not Path:
            action.completer = completer  # type: ignore[attr-defined]  # argcomplete's way
    argcomplete.autocomplete(parser)


def _arguments(parser: argparse.ArgumentParser, command: str) -> Iterable[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield from _arguments(below, name)
        else:
            yield command, action


def _board_files(**_: object) -> Iterable[str]:
    return [name.removesuffix(".yaml") for name in board.names()]


def _runs(parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    results = Path(getattr(parsed_args, "results", None) or "results")
    return ["last", *sorted(file.parent.name for file in results.glob("*/run.json"))]


def _measured_boards(parsed_args: argparse.Namespace, **others: object) -> Iterable[str]:
    """Boards as their runs' folders are called: BOARD-TIME-DIGITS."""
    runs = _runs(parsed_args, **others)
    return sorted({run.rsplit("-", 2)[0] for run in runs if run.count("-") >= 2})


def _metrics(parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
    benchmark = catalogue.benchmarks().get(getattr(parsed_args, "benchmark", None) or "")
    return [metric.name for metric in benchmark.metrics] if benchmark else []


def _figures(prefix: str, **_: object) -> Iterable[str]:
    """BENCHMARK/CASE/METRIC, a part at a time."""
    benchmarks = catalogue.benchmarks()
    name, *parts = prefix.split("/")
    if not parts:
        return [f"{each}/" for each in benchmarks]
    if name not in benchmarks:
        return []
    cases = [case.label for case in benchmarks[name].cases("full")]
    if len(parts) == 1:
        return [f"{name}/{case}/" for case in cases]
    return [f"{name}/{parts[0]}/{metric.name}" for metric in benchmarks[name].metrics]


_COMPLETERS: dict[str, _Completer] = {
    "page": lambda **_: pages(),
    "board": _board_files,
    "boards": _board_files,
    "history.board": _measured_boards,
    "run": _runs,
    **dict.fromkeys(("compare.a", "compare.b", "side_a", "side_b"), _runs),
    "benchmark": lambda **_: catalogue.benchmarks(),
    "history.metric": _metrics,
    **dict.fromkeys(("check.accept", "ab.metric"), _figures),
}
"""By the argument's name, or that behind its command's."""
