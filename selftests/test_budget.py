"""How many lines of what kind the project may have: a feature enters when another leaves.

`GOALS` is what was decided; `TODAY` holds what is still above it, and may only shrink. Who makes a part
smaller writes the smaller number here.
"""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

GOALS = {
    "evmperf pytest_evmperf strategies *.py": 32_000,
    "virtual-evm *.py": 2_900,
    "guide-reader *.py": 2_400,
    "selftests *.py": 31_000,
    "evmperf *.yaml *.j2 *.json": 4_500,
    "docs README.md *.md": 2_900,
    "dashboards *.json": 6_000,
    "evmperf/publish/influx *.py": 550,
    "evmperf/publish/grafana *.py": 240,
    "evmperf/publish/site *.py": 650,
    "evmperf/lab/keeping evmperf/commands/cli/keeping.py *.py": 350,
    "evmperf/lab/provision *.py": 1_200,
    "evmperf/explain *.py": 1_800,
    "evmperf/commands/night *.py": 650,
    "evmperf/commands/lava *.py": 1_300,
    "evmperf/lab/desk evmperf/commands/app/desk.py *.py": 1_400,
    "evmperf/measure/supply.py evmperf/benchmarks/energy.py *.py": 150,
    "evmperf/commands/cli/main.py evmperf/commands/cli/arguments.py *.py": 550,
}
"""Folders and files, then the endings that count: lines at most."""
TODAY: dict[str, int] = {
    "evmperf pytest_evmperf strategies *.py": 40_812,
    "selftests *.py": 34_123,
    "evmperf/lab/keeping evmperf/commands/cli/keeping.py *.py": 510,
}
COMMANDS = 22
"""Commands of `evmperf` at most."""


def lines(what):
    """Lines of the tracked files of these folders with these endings."""
    words = what.split()
    endings = tuple(word[1:] for word in words if word.startswith("*"))
    places = [word for word in words if not word.startswith("*")]
    listed = subprocess.run(
        ["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines() if name.endswith(endings)]
    assert files, f"{what}: this test looks in the wrong place"
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file())


@pytest.mark.parametrize("what", GOALS)
def test_lines_stay_within_their_budget(what):
    count, most = lines(what), TODAY.get(what, GOALS[what])
    assert count <= most, f"{what}: {count} lines, {most} at most: what leaves for what entered?"


@pytest.mark.parametrize("what", TODAY)
def test_what_is_above_its_goal_is_said_as_it_is(what):
    assert TODAY[what] > GOALS[what], f"{what}: the goal is met: take it from TODAY"
    assert lines(what) > TODAY[what] - 150, f"{what}: it has become smaller: write {lines(what)} into TODAY"


def test_the_commands_stay_few():
    groups = json.loads((ROOT / "evmperf/commands/cli/commands.json").read_text())
    assert sum(map(len, groups.values())) <= COMMANDS
