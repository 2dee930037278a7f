"""What `evmperf night` does with boards that work, that do not, and that others want."""

from __future__ import annotations

import re
import signal

import pytest

from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from selftests.support.placelab import until

pytestmark = pytest.mark.many_sessions


def places(night):
    return [run.place for run in night.runs()]


def test_eight_boards_are_measured_at_the_same_time_and_judged(lab, night):
    for board in lab.boards.values():
        board.boots[:] = ["stuck"]
    tonight = night(boards=[{"place": name} for name in lab.boards], against="last:3")
    # Each is in the midst of its boot before the first has gone on with its own.
    until(lambda: all(board.typed[-1:] == ["boot"] for board in lab.boards.values()), 200)
    for board in lab.boards.values():
        board.go_on()
    assert tonight.wait() == 0, tonight.said
    assert sorted(places(tonight)) == sorted(lab.boards)
    assert "8 of 8 boards measured." in tonight.said
    for run in tonight.runs():
        assert (run.kind, run.exit_status) == ("nightly", 0)
        assert run.facts.night == tonight.folder.name
    assert (tonight.folder / "outcome.txt").read_text() == "8 of 8 boards measured.\n"
    assert all(f"{run.id} against last:3: " in tonight.said for run in tonight.runs()), tonight.said
    assert "Boot time" in (tonight.folder / "guide.rst").read_text()
    assert not any(lab.holder(name) for name in lab.boards)
    assert not any(board.is_on for board in lab.boards.values())
    assert re.search(r"\[\d/8, expected end (after )?[\d -]*\d\d:\d\d", tonight.said), tonight.said


def test_a_board_that_does_not_boot_is_tried_once_more_and_what_the_product_fails_is_not(lab, night):
    lab.boards["fake-1"].boots[:] = ["panic"] * 20
    # One of three boots fails: the board works, and so the figures count as they are.
    lab.boards["fake-5"].boots[:] = ["well", "oops", "well"]
    tonight = night(boards=[{"place": "fake-1"}, {"place": "fake-5"}], boots=3)
    assert tonight.wait() == 3, tonight.said
    assert sorted(places(tonight)) == ["fake-1", "fake-1", "fake-5"]
    assert {run.ending for run in tonight.runs() if run.place == "fake-5"} == {"failed"}
    assert re.search("^fake-1: given up: .*kernel panic", (tonight.folder / "outcome.txt").read_text())


def test_a_night_leaves_a_board_to_who_kicks_it_and_waits_for_it(lab, night):
    lab.boards["fake-6"].boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-6"}], repeat="2")
    until(lambda: lab.boards["fake-6"].typed[-1:] == ["boot"], 120)
    lab.kick("fake-6", "bob")
    until(lambda: len(tonight.runs(ended=True)) == 1, 120)
    until(lambda: "waiting: fake-6 is held by here/bob" in tonight.said, 120)
    assert places(tonight) == ["fake-6"]
    lab.client("fake-6", "release", user="bob")
    assert tonight.wait() == 0, tonight.said
    assert places(tonight) == ["fake-6", "fake-6"]
    found = spool.read_results(tonight.results / tonight.runs()[-1].id)
    assert {result.conditions["repeat"] for result in found} == {"2 rounds"}


def test_a_killed_night_goes_on_where_it_was(lab, night):
    lab.boards["fake-2"].boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-1"}, {"place": "fake-2"}])
    until(lambda: len(tonight.runs(ended=True)) == 1, 120)
    until(lambda: lab.boards["fake-2"].typed[-1:] == ["boot"], 120)
    until(lambda: not lab.holder("fake-1"), 30)
    tonight.process.send_signal(signal.SIGKILL)
    tonight.process.wait()
    lab.client("fake-1", "acquire", user="bob")  # a board that has nothing left to measure is not waited for
    until(lambda: not any(board.is_on for board in lab.boards.values()), 10)
    tonight.start()
    assert tonight.wait() == 0, tonight.said
    assert "going on with night-plan-" in tonight.said
    assert re.search(r"fake-2 was still held by here/ci.*: taken back", tonight.said)
    assert sorted(places(tonight)) == ["fake-1", "fake-2", "fake-2"]
    assert "2 of 2 boards measured." in tonight.said


def test_an_interrupted_night_goes_on_and_says_what_it_could_not_do(lab, night):
    board = lab.boards["fake-2"]
    board.boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-2"}], push=True)
    until(lambda: board.typed[-1:] == ["boot"], 120)
    tonight.process.send_signal(signal.SIGINT)
    assert tonight.wait() == ExitStatus.INTERRUPTED, tonight.said
    assert f"`evmperf night {tonight.plan}` resumes it" in tonight.said
    assert (board.is_on, lab.holder("fake-2")) == (False, "")
    tonight.start()
    assert tonight.wait() == ExitStatus.FAILED, tonight.said
    assert "1 of 1 board measured." in tonight.said
    assert "not configured" in tonight.said
    assert re.search("^database: ended with status 4; see ", tonight.said, re.MULTILINE), tonight.said


def test_a_coordinator_that_is_started_anew_does_not_end_the_night(lab, night):
    lab.boards["fake-1"].boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-1"}])
    until(lambda: lab.boards["fake-1"].typed[-1:] == ["boot"], 400)
    lab.end("coordinator")
    until(lambda: len(tonight.runs(ended=True)) == 1, 400)
    lab.restart()
    assert tonight.wait() == 0, tonight.said
    assert "coordinator" in tonight.runs()[0].outcome
    assert places(tonight) == ["fake-1", "fake-1"]
