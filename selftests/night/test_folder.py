"""The folder of a night, from which a killed night goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from evmperf.commands.night import child
from evmperf.commands.night.folder import OUTCOME, open_night
from evmperf.commands.night.plan import Job, NightPlan
from evmperf.model.ended import Ending
from evmperf.model.errors import UsageError
from evmperf.model.replies import WantedSession

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


def test_a_session_that_gives_no_answer_is_told_with_its_log(tmp_path):
    wanted = WantedSession(board="virtual.yaml", results=str(tmp_path), run_id="r1")
    done = child.run(wanted, ["--no-such-option"], {}, tmp_path / "r1.log", lambda: False)
    assert (done.ending, done.sentence.partition("see ")[2]) == (Ending.WRONG, str(tmp_path / "r1.log"))
    assert "--no-such-option" in (tmp_path / "r1.log").read_text()
