"""Nights on scripted boards behind a real coordinator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evmperf.measure.hostload import slowness
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.run import Run
from selftests.support import programs
from selftests.support.placelab import PlaceLab

DEADLINE_S = 240


class Night:
    """`evmperf night` in a process of its own, on a plan made of keywords."""

    def __init__(self, lab: PlaceLab, folder: Path, plan: dict[str, Any]) -> None:
        folder.mkdir()
        self.lab, self.results = lab, folder / "results"
        file = lab.board_file(folder / "scripted.yaml")
        self.plan = folder / "plan.yaml"
        self.boots = plan.pop("boots", 1)
        jobs = [{"board": str(file), "benchmarks": "default_rootfs", **job} for job in plan.pop("boards")]
        usual = {"until": "10m", "stagger": "0s"}
        self.plan.write_text(yaml.safe_dump({**usual, **plan, "boards": jobs}))
        self.log = folder / "night.log"
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "evmperf.commands.cli.main", "night", str(self.plan)]
        # Runs of other tests would be a history, and a loaded host a slower board.
        variables = {
            "EVMPERF_HISTORY": str(self.plan.with_name("history")),
            "PYTEST_ADDOPTS": f"--boots={self.boots}",
        }
        self.process = programs.start(
            self.log, *words, "--results", self.results, environment=self.lab.environment, **variables
        )

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S * slowness())

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def folder(self) -> Path:
        return next(self.results.glob("night-*"))

    def runs(self, *, ended: bool = False) -> list[Run]:
        """The night's runs, oldest first."""
        runs = [entry.run for entry in SpoolFolder(self.results).runs()]
        return [run for run in runs if run.ending or not ended]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlaceLab]:
    """Eight boards, of which four are of one kind: any of them would do."""
    places = {f"fake-{n}": {"board": "fake"} if n <= 4 else {} for n in range(1, 9)}
    lab = PlaceLab(tmp_path_factory.mktemp("nightlab"), places)
    lab.environment |= {"LG_HOSTNAME": "here", "LG_USERNAME": "ci"}
    yield lab
    lab.close()


@pytest.fixture
def night(lab: PlaceLab, tmp_path: Path) -> Iterator[Callable[..., Night]]:
    started: list[Night] = []

    def start(**plan: Any) -> Night:
        started.append(Night(lab, tmp_path / f"night{len(started)}", plan))
        return started[-1]

    yield start
    for one in started:
        programs.end(one.process)
    for name, board in lab.boards.items():
        board.boots.clear()
        board.pace_s = 0.05
        if lab.holder(name):
            lab.client(name, "release", "--kick")
