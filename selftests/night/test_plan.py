"""What a night's plan may say, and what is wrong with those that may not."""

from __future__ import annotations

import time

import pytest
import yaml

from evmperf.commands.night import plan
from evmperf.model.errors import UsageError

BOARD = "virtual.yaml"


@pytest.fixture
def read(tmp_path):
    def read_it(boards=({"board": BOARD},), **words):
        file = tmp_path / "night.yaml"
        file.write_text(yaml.safe_dump({"boards": list(boards), **words}))
        return plan.read(file)

    return read_it


def test_a_plan_names_its_jobs(read):
    found = read([{"board": BOARD}, {"board": BOARD}, {"board": "am335x.yaml", "place": "desk-3"}])
    assert [job.name for job in found.boards] == ["virtual", "virtual-2", "desk-3"]
    assert found.name == "night"


def test_a_board_gets_its_own_image_or_that_of_all(read):
    boards = [{"board": BOARD}, {"board": "virtual-sd.yaml"}, {"board": BOARD, "image": "mine.wic"}]
    found = read(boards, images=["11.01", "virtual-sd=b.wic.zst"])
    assert [job.image for job in found.boards] == ["11.01", "b.wic.zst", "mine.wic"]


def test_a_board_may_be_measured_over_more_often_than_the_others(read):
    found = read([{"board": BOARD}, {"board": BOARD, "repeat": "until:2%/5m"}], repeat="2")
    assert (found.repeat, [job.repeat for job in found.boards]) == ("2", ["", "until:2%/5m"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"boards": []}, "boards: is empty"),
        ({"boards": [{"board": "none.yaml"}]}, "none.yaml"),
        ({"boards": [{"name": "x"}]}, "missing required field `board` - at `boards[0]`"),
        ({"boards": [{"board": BOARD, "plase": "a"}]}, "'plase'; did you mean 'place'"),
        ({"boards": [{"board": BOARD, "uses": ["tester"]}]}, "no number under limits"),
        ({"boards": [{"board": BOARD, "place": "a"}]}, "virtual.yaml has no RemotePlace"),
        ({"limits": {"tester": 0}}, "`int` >= 1 - at `limits"),
        ({"at_once": -1}, "`int` >= 0 - at `at_once`"),
        ({"stagger": "soon"}, "night.yaml: 'soon'"),
        ({"until": "tomorrow"}, "night.yaml: 'tomorrow'"),
        ({"name": "../x"}, "name: '../x' names the night's folder"),
        ({"until": 1350}, 'in quotes, as "22:30"'),
        ({"against": "bananas"}, "night.yaml: against: 'bananas'"),
        ({"repeat": "often"}, "night.yaml: --repeat=often"),
        ({"repeat": 5}, "Expected `str`, got `int` - at `repeat`"),
        ({"boards": [{"board": BOARD, "repeat": "until:0%"}]}, "number 1: --repeat=until:0%"),
        ({"push": "yes please"}, "Expected `bool`, got `str` - at `push`"),
        ({"images": ["am99x=a.wic"]}, "known are virtual"),
    ],
)
def test_a_mistake_is_named(read, words, said):
    with pytest.raises(UsageError) as found:
        read(**words)
    assert said in str(found.value)


def test_a_night_ends_at_its_hour(read):
    began = time.mktime((2026, 11, 22, 22, 0, 0, 0, 0, -1))
    assert time.localtime(plan.end_of(read(until="06:30"), began))[2:5] == (23, 6, 30)
    assert time.localtime(plan.end_of(read(until="22:30"), began))[2:5] == (22, 22, 30)
    assert plan.end_of(read(until="90m"), began) == began + 5400
