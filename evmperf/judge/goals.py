"""Goals: figures that a lab answers for, each with a limit and an owner.

`options.goals` of a board file has them, and the lab's file ($EVMPERF_GOALS) by board, `*` for all:

    boot_time_mmcsd default_rootfs boot_time: under 9.5 s, owner Ada
    emmc_ext4_fio_1g 4 MiB write: at least 55 MB/s, owner storage, margin 2 %

The margin is the share of the limit by which a figure may miss it before that counts as missed.
"""

import functools
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evmperf.benchmarks import catalogue, wording
from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError, meant
from evmperf.model.figures import Key
from evmperf.model.run import Run
from evmperf.model.verdict import GoalWord, Reached

LAB_FILE = "EVMPERF_GOALS"
"""Environment variable: the lab's file of goals."""
_GOAL = re.compile(
    r"(?P<way>under|at most|over|at least) (?P<limit>\d+(?:\.\d+)?) ?(?P<unit>[^\s,]+)"
    r", owner (?P<owner>[^,]{1,60})(?:, margin (?P<margin>\d+(?:\.\d+)?) ?%)?"
)
_FORM = "a goal reads `at least 55 MB/s, owner NAME` or `under 9.5 s, owner NAME, margin 2 %`"


@dataclass(frozen=True)
class Goal:
    """A limit for one figure, in the figure's unit; `margin` is a share of it."""

    key: Key
    text: str
    owner: str
    limit: float
    highest: bool
    margin: float = 0.0

    def reached(self, value: float | None, unit: str) -> Reached:
        """What a figure (None: not measured) says of the goal."""
        word = GoalWord.NOT_MEASURED
        if value is not None:
            beyond = (value - self.limit if self.highest else self.limit - value) / (self.limit or 1.0)
            word = GoalWord.UNKNOWN if beyond <= self.margin else GoalWord.MISSED
            word = GoalWord.MET if beyond <= 0 else word
        return Reached(self.key, self.text, self.owner, word, value, unit)


def of_run(run: Run) -> list[Goal]:
    """The goals of a run's board; its file is read where it is here: a run may be another host's.

    Raises UsageError with file, line and remedy for a goal that cannot be understood.
    """
    goals: list[Goal] = []
    given = run.facts.board_file
    if given and (Path(given).is_file() or Path(given).name in boards.files()):
        file = boards.find(given)
        goals += _read(file, boards.load(file).options.goals)
    if lab := os.environ.get(LAB_FILE):
        parts = yamlfile.read(Path(lab)) or {}
        is_named = isinstance(parts, dict) and "goals" not in parts  # the word of a board file
        if not is_named or not all(isinstance(one, dict | None) for one in parts.values()):
            raise UsageError(f"{lab}: must be a mapping of boards ('*': all), each with a mapping of goals")
        for whose in ("*", run.board):
            goals += _read(Path(lab), parts.get(whose) or {})
    return list({goal.key: goal for goal in goals}.values())


def _read(file: Path, entries: Mapping[Any, Any]) -> Iterator[Goal]:
    for name, text in entries.items():
        try:
            yield _goal(str(name), str(text))
        except UsageError as error:
            lines = file.read_text(encoding="utf-8").splitlines()
            at = [n for n, line in enumerate(lines, 1) if line.strip(" \t'\"").startswith(str(name))]
            raise UsageError(f"{file}{f' line {at[0]}' if at else ''}: goal {name!r}: {error}") from None


def _goal(name: str, text: str) -> Goal:
    match = _GOAL.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} cannot be read: {_FORM}")
    names = _names()
    if _plain(name) not in names:
        hint = meant(_plain(name), names)
        raise UsageError(
            f"no figure has this name: write BENCHMARK CASE METRIC (evmperf benchmark list){hint}"
        )
    key, unit = names[_plain(name)]
    if match["unit"] != unit:
        raise UsageError(f"the unit of this figure is {unit}, not {match['unit']}")
    highest = match["way"] in ("under", "at most")
    words = f"{match['way']} {match['limit']} {unit}"
    margin = float(match["margin"] or 0) / 100
    return Goal(key, words, match["owner"].strip(), float(match["limit"]), highest, margin)


@functools.cache
def _names() -> Mapping[str, tuple[Key, str]]:
    """Every figure of the catalogue with its unit, by its ids and by its words."""
    names: dict[str, tuple[Key, str]] = {}
    for name, benchmark in catalogue.benchmarks().items():
        for case in benchmark.cases("full") + benchmark.cases("quick"):
            for metric in benchmark.metrics_of(case):
                entry = Key(name, case.label, metric.name), str(metric.unit)
                for label in {case.label, wording.case(name, case.label)}:
                    for metric_name in {metric.name, wording.metric(metric.name)}:
                        names[_plain(f"{name} {label} {metric_name}")] = entry
                names[_plain(wording.figure(entry[0]))] = entry
    return names


def _plain(name: str) -> str:
    return " ".join(name.replace(",", " ").lower().split())
