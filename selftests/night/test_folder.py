"""What a night's plan may say, and its folder, from which a killed night goes on."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from evmperf.commands.night import plan
from evmperf.commands.night.folder import OUTCOME, open_night
from evmperf.commands.night.plan import Job, NightPlan
from evmperf.model.errors import UsageError

JOBS = [Job("virtual.yaml", name="a"), Job("virtual.yaml", name="../b/[c]")]
PLAN = NightPlan(JOBS, name="x", until="1h")


def opened(results, text="plan", *, fresh=False):
    """A night that was killed: its lock is free."""
    night = open_night(PLAN, text, results, fresh=fresh)
    night.lock.close()
    return night


def begun(results):
    """One that began a minute ago, so that a new one has another name."""
    night = opened(results)
    old = results / f"night-x-{datetime.now(UTC) - timedelta(minutes=1):%Y%m%dT%H%M%SZ}"
    night.path.rename(old)
    return old


def test_a_night_goes_on_in_its_folder_with_its_times_and_runs(tmp_path):
    first = opened(tmp_path)
    for job, run in ((JOBS[0], "r-2"), (JOBS[1], "r-3"), (JOBS[0], "r-1")):
        log = first.log(job, run)
        log.parent.mkdir(exist_ok=True)
        log.touch()
        assert log.parent.parent == first.path
    again = opened(tmp_path)
    assert again.resumed
    assert (again.path, again.began, again.until) == (first.path, first.began, first.until)
    assert [again.runs(job) for job in JOBS] == [["r-1", "r-2"], ["r-3"]]


def test_a_night_of_another_plan_is_a_new_one(tmp_path):
    old = begun(tmp_path)
    assert opened(tmp_path).path == old
    assert not opened(tmp_path, "other").resumed


@pytest.mark.parametrize("fresh", [True, False])
def test_a_night_that_has_ended_or_is_not_wanted_is_left(tmp_path, fresh):
    old = begun(tmp_path)
    if not fresh:
        (old / OUTCOME).touch()
    assert not opened(tmp_path, fresh=fresh).resumed


def test_a_night_whose_record_is_cut_at_any_byte_stops_no_later_night(tmp_path):
    file = begun(tmp_path) / "plan.yaml"
    whole = file.read_bytes()
    for text in (*(whole[:cut] for cut in range(len(whole))), b"\xff", whole + b"x"):
        file.write_bytes(text)
        night = opened(tmp_path)
        assert not night.resumed
        (night.path / "plan.yaml").unlink()
        night.path.rmdir()


def test_a_night_that_goes_on_elsewhere_is_left_to_it(tmp_path):
    night = open_night(PLAN, "plan", tmp_path, fresh=False)
    with pytest.raises(UsageError, match="going on in another process"):
        opened(tmp_path)
    night.lock.close()


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
