"""What a night's plan may say, its folder, from which a killed night goes on, and its end."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from evmperf.commands.night import child, plan
from evmperf.commands.night import closing as closings
from evmperf.commands.night.closing import LOG, Closing, ClosingCommand, close
from evmperf.commands.night.conductor import Doing, NightConductor, Progress
from evmperf.commands.night.folder import OUTCOME, NightFolder, open_night
from evmperf.commands.night.plan import Job, NightPlan
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.ended import Ending
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import WantedSession
from selftests.support import runs

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


def conducted(folder, words, *measured):
    """A night in the folder of its runs that has measured these on each of its boards."""
    file = folder / "x.yaml"
    file.write_text(f"guide: no\n{words}boards: [{', '.join(['{board: virtual.yaml}'] * len(measured))}]\n")
    (folder / "night-x").mkdir()
    there = NightFolder(folder / "night-x", time.time(), time.time() + 3600, resumed=False, lock=None)
    night = NightConductor(plan.read(file), folder, there, lambda line: None)
    for progress, numbers in zip(night.progress, measured, strict=True):
        progress.state = "measured"
        progress.runs = [f"am64xx-hsevm-{number:04}" for number in numbers]
    return night


def test_all_runs_are_judged_and_what_is_worse_is_checked_again(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))
    lost = ("emmc_ext4", "102400", "write_throughput")
    generator = runs.history(tmp_path, nights=12)
    for number in (20, 21):
        changed = {lost: 0.7} if number == 20 else {}
        runs.write(tmp_path, runs.results(generator, changed=changed), number=number, night="night-x")
    runs.write(tmp_path, [], number=22, night="night-x")  # nothing measured
    night = conducted(tmp_path, "confirm: 1m\n", [20], [21, 22])
    night.progress[1].runs.append("killed-early")
    closing = close(night)
    kept = SpoolFolder(tmp_path / "store").runs()
    assert [entry.run.id[-4:] for entry in kept] == ["0020", "0021", "0022"]
    said = capfd.readouterr().out
    assert re.search(r"worse .*-29\.", said), said
    assert said.count("not checked again") == 1
    # There is no image of a good run to check it with, and that is nobody's failure.
    assert closing.failed == []
    assert closing.status == ExitStatus.FAILED
    assert [line.partition(",")[0] for line in closing.lines] == ["2 of 2 boards measured"]
    assert (tmp_path / "night-x" / OUTCOME).read_text() == f"{closing.lines[0]}\n"
    assert (tmp_path / "site/index.html").is_file()


def test_one_damaged_old_run_is_left_out_by_name_and_the_rest_is_judged(tmp_path, capfd):
    generator = runs.history(tmp_path, nights=12)
    damaged = tmp_path / "am64xx-hsevm-0004" / "results.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"value":', b'"value":x', 1))
    (tmp_path / "am64xx-hsevm-0005" / "run.json").write_text("{")
    lost = ("emmc_ext4", "102400", "write_throughput")
    runs.write(tmp_path, runs.results(generator, changed={lost: 0.7}), number=20, night="night-x")
    closing = close(conducted(tmp_path, "site: no\n", [20]))
    assert (closing.failed, closing.judged) == ([], ExitStatus.FAILED)
    said = capfd.readouterr().out
    for text in ("am64xx-hsevm-0004: its results are damaged", "am64xx-hsevm-0005/run.json"):
        assert text in said


def test_a_night_without_verdicts_is_not_a_good_night(tmp_path, monkeypatch):
    generator = runs.history(tmp_path, nights=1)
    runs.write(tmp_path, runs.results(generator), number=20, night="night-x")
    night = conducted(tmp_path, "site: no\n", [20])
    # A mistake in evmperf, in the process that judges.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'check' in sys.orig_argv:\n"
        "    import evmperf.judge.against as against\n"
        "    def judged(*_, **__): raise AssertionError('moon phase')\n"
        "    against.judged = judged\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    closing = close(night)
    ((command, said),) = closing.failed
    assert command == "verdicts"
    log = tmp_path / "night-x" / LOG
    assert said.endswith(f"see {log}")
    assert "moon phase" in log.read_text()
    assert closing.status == ExitStatus.FAILED
    assert closing.lines == [f"verdicts: {said}", "1 of 1 board measured."]


def test_the_exit_status_says_first_what_a_lab_has_to_mend():
    good, other = Progress(Job("a", name="a"), Ending.MEASURED), Job("b", name="b")
    given_up = Progress(other, Doing.GIVEN_UP, sentence="the night had to end")
    closing = Closing([good, given_up], ExitStatus.FAILED)
    assert closing.status == ExitStatus.LAB_BROKEN
    assert closing.lines[0] == f"b: given up: {given_up.sentence}"
    assert Closing([good, Progress(other, Ending.FAILED)]).status == ExitStatus.FAILED
    assert Closing([good], ExitStatus.FAILED).status == ExitStatus.FAILED
    assert Closing([good], ExitStatus.UNDECIDED).status == ExitStatus.UNDECIDED
    assert Closing([good]).status == ExitStatus.OK


def test_the_log_of_a_nights_end_has_no_password(tmp_path):
    closing, log = Closing([]), tmp_path / LOG
    words = ["check", f"--results={tmp_path}", "--from=https://ci:hunter2pw@lab.example/store", "last"]
    closings.run(closing, log, ClosingCommand("verdicts", words))
    assert closing.failed
    assert "lab.example/store" in log.read_text()
    assert "hunter2pw" not in log.read_text() + str(closing.failed)


def test_a_command_that_does_not_end_when_told_is_killed_with_what_it_started(tmp_path, monkeypatch):
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600 & wait\nwait\n")
    deaf.chmod(0o755)
    monkeypatch.setattr("evmperf.commands.night.closing.sys.executable", str(deaf))
    monkeypatch.setattr("evmperf.commands.night.closing._GRACE_S", 0.1)
    closing = Closing([])
    closings.run(closing, tmp_path / LOG, ClosingCommand("site", ["site"], limit_s=0.1))
    assert closing.failed == [("site", f"ended with status -9; see {tmp_path / LOG}")]
