"""What variants are worth in outputs of programs and GPUs that no virtual EVM has."""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from evmperf.benchmarks.tools import glmark2
from selftests.support import real_tools

BASELINES = Path(__file__).parents[3] / "baselines"
_HALF_CENT = 0.005
"""What rounding to two decimals makes of a rate."""
_WITH_TERRAIN = ("glmark2-1", "glmark2-2", "glmark2-3")
"""Real outputs in which that scene was drawn."""
_FRAMES = re.compile(r"\[([a-z0-9-]+)\] .*: FPS: (\d+) ")


@dataclass(frozen=True)
class Recorded:
    """A figure as evmperf has it and the other way."""

    variant: str
    figure: str
    own: float
    other: float
    is_bound: bool = False
    """Whether the other one is the farthest that it may be, either way."""

    @property
    def difference(self) -> float:
        """How much more evmperf's figure is, as a part of the other."""
        return self.own / self.other - 1

    @property
    def line(self) -> str:
        """The line of the table, in Markdown."""
        said = f"at most ± {abs(self.difference):.1%}" if self.is_bound else f"{self.difference:+.1%}"
        return f"| `{self.variant}` | {self.figure} | {self.own:.4g} | {self.other:.4g} | {said} | 1 |"


def two_decimals() -> Recorded:
    """The published rate of CoreMark-PRO that rounding can change most, and that change."""
    rates = {
        f"{run.parent.name.removeprefix('guide-')}, {result['case']}": figure["mean"]
        for run in sorted(BASELINES.glob("*/results.jsonl"))
        for result in map(json.loads, run.read_text().splitlines())
        if result.get("benchmark", "").startswith("coremarkpro")
        for figure in result["published"]
        if figure["mean"]
    }
    name = min(rates, key=lambda name: rates[name])
    rate = rates[name]
    return Recorded("two decimals", f"CoreMark-PRO: {name}", rate, rate - _HALF_CENT, is_bound=True)


def without_terrain() -> list[Recorded]:
    """Scores of GPUs that draw the scene, and the mean of the other scenes; none where the real
    outputs are not there.
    """
    folder = real_tools.folder()
    found = []
    for name in _WITH_TERRAIN if folder else ():
        text = (folder / f"{name}.txt").read_text()
        renderer = glmark2.drawing(text).renderer
        scenes = [(scene, int(frames)) for scene, frames in _FRAMES.findall(text)]
        score, rest = (
            statistics.fmean(frames for scene, frames in scenes if scene != left_out)
            for left_out in ("", "terrain")
        )
        found.append(Recorded("without terrain", f"glmark2: {renderer}", score, rest))
    return found
