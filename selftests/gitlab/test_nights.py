"""Nights in GitLab without a database: each in a workspace that holds nothing of the one before."""

import shlex
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import yaml

from evmperf.commands.cli import main as cli
from evmperf.commands.gitlab.pipeline import render
from evmperf.commands.night import plan
from evmperf.judge.past import FEWEST
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.exits import ExitStatus
from selftests.support import runs

BOARD = "am64xx-hsevm"
WORSE = ("emmc_ext4", "102400", "write_throughput")
BENCHMARKS = ("emmc_ext4",)
NIGHTS = 12


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Judges a night's results in a new workspace, by the command of the job that does so; returns
    its status, and what its JUnit file says of each figure.
    """
    data = yaml.safe_load(render(plan.checked({"boards": [{"board": "am64x"}]}, "here", "n")))
    (line,) = data["judge am64x"]["script"]
    program, *words = shlex.split(line)
    assert program.endswith("/evmperf")
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "history"))
    monkeypatch.delenv("EVMPERF_INFLUX_URL", raising=False)

    def judge(number, found):
        workspace = tmp_path / f"workspace-{number}"
        workspace.mkdir()
        monkeypatch.chdir(workspace)
        runs.write(workspace / "results", found, board=BOARD, number=number)
        status = cli.main(words)
        cases = ET.parse(workspace / "verdict-am64x.xml").iter("testcase")
        kinds = {case.get("name"): [child.tag for child in case] for case in cases}
        assert kinds
        return status, kinds

    return judge


def test_nights_are_judged_by_those_before_without_a_database(tmp_path, judged):
    generator = np.random.default_rng(3)
    for number in range(NIGHTS - 1):
        status, kinds = judged(number, runs.results(generator, BENCHMARKS))
        skipped = sum("skipped" in tags for tags in kinds.values())
        # A few nights must have been before one can be judged; then every figure is.
        early = number < FEWEST
        assert (skipped == len(kinds)) == early, number
        assert status == (ExitStatus.NOTHING if early else ExitStatus.OK), number
    history = SpoolFolder(tmp_path / "history").runs(BOARD)
    assert [entry.run.id for entry in history] == [f"{BOARD}-{n:04}" for n in range(NIGHTS - 1)]
    worse = runs.results(generator, BENCHMARKS, changed={WORSE: 0.7})
    status, kinds = judged(NIGHTS - 1, worse)
    assert status == ExitStatus.FAILED
    (failed,) = [name for name, tags in kinds.items() if "failure" in tags]
    assert all(word in failed for word in WORSE[1:])
