"""What `evmperf night` does with boards that work, that do not, and that others want."""

from __future__ import annotations

import json
import signal

import pytest

from evmperf.runs import spool
from selftests.support.placelab import until

pytestmark = pytest.mark.many_sessions

KIND = {"any": {"board": "fake"}}


def places(night):
    return [event["place"] for event in night.events("started")]


def test_boards_are_measured_side_by_side_and_judged(lab, night):
    tonight = night(boards=[{"place": f"fake-{n}"} for n in (1, 2, 3)], against="last:3")
    status = None
    until(lambda: list(tonight.results.glob("night-*/status.json")), 60)

    def shows_what_is_measured():
        nonlocal status
        status = json.loads((tonight.folder / "status.json").read_text())
        return any("boot_time_mmcsd" in place["doing"] for place in status["places"])

    until(shows_what_is_measured, 120)
    (busy, *_) = [place for place in status["places"] if place["doing"]]
    assert busy["holder"] == "ci on here"
    assert busy["run"] == tonight.folder.name
    assert busy["health"] == "good"
    assert "http-equiv" in (tonight.folder / "status.html").read_text()
    assert tonight.wait() == 0, tonight.said
    assert sorted(places(tonight)) == ["fake-1", "fake-2", "fake-3"]
    assert "3 of 3 boards measured." in tonight.said
    for event in tonight.events("started"):
        run = spool.read_run(tonight.results / event["run"])
        assert (run.kind, run.place, run.exit_status) == ("nightly", event["place"], 0)
        assert (tonight.folder / f"verdict-{run.id}.md").exists()
    text = (tonight.folder / "night.md").read_text()
    assert "| fake-1 | measured | fake-1 | 1 |" in text
    assert "3 of 3 boards measured." in (tonight.folder / "night.html").read_text()
    assert "http-equiv" not in (tonight.folder / "status.html").read_text()
    assert [lab.holder(name) for name in lab.boards] == ["", "", "", ""]


def test_a_board_that_does_not_boot_is_tried_elsewhere_and_doubted(lab, night):
    for name in ("fake-3", "fake-4"):
        lab.client(name, "set-tags", "health=bad")
    lab.boards["fake-1"].boots[:] = ["panic"] * 20
    lab.client("fake-1", "set-tags", "health_failures=1")
    lab.client("fake-2", "acquire", user="bob")  # so fake-1 is first
    tonight = night(boards=[{"name": "kind", **KIND}])
    until(lambda: places(tonight) == ["fake-1"], 60)
    lab.client("fake-2", "release", user="bob")
    assert tonight.wait() == 0, tonight.said
    assert places(tonight) == ["fake-1", "fake-2"]
    first, second = tonight.events("measured")
    assert (first["ending"], second["ending"]) == ("board", "measured")
    assert "kernel panic" in (tonight.folder / "night.md").read_text()
    tags = lab.client("fake-1", "show")
    assert "health=suspect" in tags
    assert "kernel panic" in tags

    # Its next use begins with a check: that fails, and it is left out from then on.
    lab.client("fake-2", "set-tags", "health=bad")
    again = night(boards=[{"name": "kind", **KIND}])
    assert again.wait() == 3, again.said
    assert "fake-1 is bad: kernel panic" in again.said
    assert "failed its health check: kernel panic" in (again.folder / "night.md").read_text()
    assert "health=bad" in lab.client("fake-1", "show")
    assert places(again) == []


def test_a_suspect_board_that_passes_its_check_is_well(lab, night):
    lab.client("fake-1", "set-tags", "health=suspect", "health_why=it panicked")
    tonight = night(boards=[{"place": "fake-1"}])
    assert tonight.wait() == 0, tonight.said
    (check,) = tonight.events("checked")
    assert check["well"]
    assert "health" not in lab.client("fake-1", "show")


def test_what_fails_on_the_products_account_is_not_tried_elsewhere(lab, night):
    # One of three boots fails: the board works, and so the figures count as they are.
    for board in lab.boards.values():
        board.boots[:] = ["well", "oops", "well"]
    tonight = night(boards=[{"name": "kind", **KIND}])
    assert tonight.wait() == 1, tonight.said
    (measured,) = tonight.events("measured")
    assert measured["ending"] == "failed"


def test_a_busy_board_is_waited_for(lab, night):
    lab.client("fake-1", "acquire", user="bob")
    tonight = night(boards=[{"place": "fake-1"}], repeat="2")
    until(lambda: "waiting: fake-1 is held by bob on here" in tonight.said, 60)
    lab.client("fake-1", "release", user="bob")
    assert tonight.wait() == 0, tonight.said
    (started,) = tonight.events("started")
    found = spool.read_results(tonight.results / started["run"])
    assert {result.conditions["repeat"] for result in found} == {"2 rounds"}


def test_a_board_that_is_taken_is_measured_elsewhere(lab, night):
    for board in lab.boards.values():
        board.boots[:] = ["stuck"]
    tonight = night(boards=[{"name": "kind", **KIND}])
    until(lambda: any(board.typed[-1:] == ["boot"] for board in lab.boards.values()), 60)
    (place,) = places(tonight)
    for name, board in lab.boards.items():
        if name != place:
            board.boots.clear()
    lab.kick(place, "bob")
    assert tonight.wait() == 0, tonight.said
    first, second = tonight.events("measured")
    assert first["ending"] == "lost"
    # By whom, the session knows only where Labgrid says so before it has ended.
    assert f"The board was lost: {place} was " in first["sentence"]
    assert second["place"] != place
    assert "health_failures" not in lab.client(place, "show")


def test_a_killed_night_goes_on_where_it_was(lab, night):
    lab.boards["fake-2"].boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-1"}, {"place": "fake-2"}])
    until(lambda: len(tonight.events("measured")) == 1, 120)
    until(lambda: lab.boards["fake-2"].typed[-1:] == ["boot"], 60)
    tonight.process.send_signal(signal.SIGKILL)
    tonight.process.wait()
    until(lambda: not any(board.is_on for board in lab.boards.values()), 10)
    until(lambda: not lab.holder("fake-2"), 20)
    tonight.start()
    assert tonight.wait() == 0, tonight.said
    assert "going on with night-plan-" in tonight.said
    assert sorted(places(tonight)) == ["fake-1", "fake-2", "fake-2"]
    assert "2 of 2 boards measured." in tonight.said


def test_a_coordinator_that_is_started_anew_does_not_end_the_night(lab, night):
    lab.boards["fake-1"].boots[:] = ["stuck"]
    tonight = night(boards=[{"place": "fake-1"}])
    until(lambda: lab.boards["fake-1"].typed[-1:] == ["boot"], 60)
    lab.end("coordinator")
    until(lambda: len(tonight.events("measured")) == 1, 60)
    lab.restart()
    assert tonight.wait() == 0, tonight.said
    assert "does not know any more that fake-1 is ours" in tonight.events("measured")[0]["sentence"]
    assert places(tonight) == ["fake-1", "fake-1"]
