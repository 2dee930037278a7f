"""What a night's plan may say."""

from __future__ import annotations

import time

import pytest
import yaml

from evmperf.commands.night import plan

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


def test_a_night_ends_at_its_hour(read):
    began = time.mktime((2026, 11, 22, 22, 0, 0, 0, 0, -1))
    assert time.localtime(plan.end_of(read(until="06:30"), began))[2:5] == (23, 6, 30)
    assert time.localtime(plan.end_of(read(until="22:30"), began))[2:5] == (22, 22, 30)
    for text, seconds in {"90m": 5400, "1h30m": 5400, "1.5h": 5400, "90s": 90, "1d": 86400}.items():
        assert plan.end_of(read(until=text), began) == began + seconds
