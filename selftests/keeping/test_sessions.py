"""Sessions on scripted boards behind a real coordinator: no board is used that is not held."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time

import pytest
import yaml

from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import Wanted
from evmperf.measure.hostload import slowness
from evmperf.measure.runs import spool
from selftests.provision import imagelab
from selftests.support import programs
from selftests.support.boardfiles import console_and_power
from selftests.support.placelab import until
from selftests.support.sessions import Pytest

pytestmark = pytest.mark.many_sessions


@pytest.fixture
def measure(lab, tmp_path):
    """A function that starts a session in a place, or with a file of its own."""
    started = []

    def start(*options, place="one", board=None, results="results", **environment):
        file = board or lab.board_file(tmp_path / "results.yaml")
        environment = {**lab.environment, "LG_PLACE": place, **environment}
        started.append(Pytest(file, tmp_path / results, "default_rootfs", options, environment))
        return started[-1]

    yield start
    for session in started:
        programs.end(session.process)


def after_the_first_case(session, board):
    """Wait until a session is in the midst of a boot for its second case; what it has of the first."""
    until(session.measured, 120)
    board.boots[:] = ["stuck"]
    until(lambda: boots_for_long(board), 60)
    (first,) = session.measured()
    assert first.case == "default_rootfs"
    return first


@pytest.fixture
def board(lab):
    board = lab.boards["one"]
    board.switch(on=False)
    board.boots.clear()
    board.typed.clear()
    yield board
    board.pace_s = 0.05
    if "coordinator" not in lab.servers:
        lab.restart()
    if lab.holder("one"):
        lab.client("one", "release", "--kick")


def boots_for_long(board):
    """Whether the board has been told to boot and does not answer."""
    return board.boots == [] and board.typed[-1:] == ["boot"]


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("kicked", "one was (taken by here/bob|released by another)"),
        ("restarted", "has forgotten who holds one"),
    ],
)
def test_a_session_that_lost_its_place_sends_nothing_more(lab, measure, board, how, told):
    session = measure("-k", "boot_time")
    before = after_the_first_case(session, board)
    if how == "kicked":
        lab.kick("one", "bob")
    else:
        lab.end("coordinator")
    sent, switched = list(board.typed), list(board.switched)
    assert session.wait() == 3
    assert (board.typed, board.switched, board.is_on) == (sent, switched, True)
    assert "The board was lost: " in session.said
    assert "coordinator became unavailable" not in session.said  # Labgrid's own line
    # What was measured before is kept. The case in flight is dropped, and nothing is left that
    # looks like a result of it.
    assert re.search(told, spool.read_run(session.folder).facts.lost)
    assert session.measured() == spool.read_results(session.folder) == [before]
    if how == "kicked":
        assert lab.holder("one") == "here/bob"


def test_a_killed_session_keeps_what_was_measured_and_the_next_takes_its_place_back(lab, measure, board):
    first = measure("-k", "boot_time")
    before = after_the_first_case(first, board)
    first.process.kill()
    first.wait()
    assert first.measured() == [before]
    assert spool.read_run(first.folder).outcome == ""
    stranger = measure(LG_USERNAME="bob")  # it is not theirs to take
    assert stranger.wait() == 4
    assert "one is held by here/me+scripted-evm-" in stranger.said
    second = measure(results="after")
    assert second.wait() == 0, second.said
    assert (spool.read_run(second.folder).place, board.is_on) == ("one", False)
    assert re.search(r"still held by here/me\+scripted-evm-.*, whose session was killed", second.said)
    assert lab.holder("one") == ""


@pytest.mark.parametrize(
    ("wrong", "status", "sentence"),
    [
        ({"place": "oen"}, 4, "pattern oen matches nothing"),
        ({"LG_COORDINATOR": "127.0.0.1:1"}, 3, "no Labgrid coordinator answers at 127.0.0.1:1"),
    ],
)
def test_what_is_no_place_of_the_lab_is_said_once(measure, wrong, status, sentence):
    session = measure(**wrong)
    assert session.wait() == status
    assert session.said.count(sentence) == 1
    assert not session.results.exists()


def test_of_two_sessions_on_a_local_board_one_is_refused_or_waits(lab, measure, board, tmp_path):
    local = tmp_path / "local.yaml"
    data = yaml.safe_load(lab.board_file(local).read_text().replace("!template ", ""))
    data["targets"]["main"]["resources"] = console_and_power(board.port, lab.switches["one"].port)
    local.write_text(yaml.safe_dump(data, sort_keys=False))
    board.boots[:] = ["stuck"]
    first = measure(board=local)
    until(lambda: boots_for_long(board))
    sent = list(board.typed)
    second = measure(board=local)
    assert second.wait() == 4
    assert second.said.count("local is held by here/me+scripted-evm-") == 1
    waiting = measure("--wait", "1m", board=local)
    until(lambda: "local is held by here/me+scripted-evm-" in waiting.said)
    assert (board.typed, board.is_on) == (sent, True)
    first.process.send_signal(signal.SIGINT)
    assert first.wait() == 2
    assert waiting.wait() == 0, waiting.said


# An end from outside


def test_a_cancelled_session_leaves_its_board_off_and_its_run_whole(lab, measure, board):
    session = measure("-k", "boot_time")
    before = after_the_first_case(session, board)
    session.process.send_signal(signal.SIGTERM)
    assert session.wait() == 2, session.said
    assert not board.is_on
    assert lab.holder("one") == ""
    run = spool.read_run(session.folder)
    assert run.exit_status == 2
    assert run.facts.interrupted_by == "SIGTERM"
    assert run.outcome.startswith("Interrupted by SIGTERM: 1 of ")
    assert session.measured() == [before]
    assert (session.folder / "report.html").exists() or list(session.folder.glob("*.html"))


def test_signals_that_hurry_do_not_keep_the_board_on(lab, measure, board):
    board.boots[:] = ["stuck"]
    session = measure()
    until(lambda: boots_for_long(board))
    lab.switches["one"].answering.clear()
    session.process.send_signal(signal.SIGTERM)
    until(lambda: not board.is_on)  # it waits for the switch's answer now
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        session.process.send_signal(number)
        time.sleep(0.05)
    lab.switches["one"].answering.set()
    assert session.wait() == 2, session.said
    assert (board.switched[-1], board.is_on) == (False, False)
    assert lab.holder("one") == ""
    assert spool.read_run(session.folder).facts.interrupted_by == "SIGTERM"


def test_an_ab_that_is_ended_has_put_its_board_back(lab, measure, board, tmp_path):
    board.boots[:] = ["stuck"]
    file = lab.board_file(tmp_path / "scripted.yaml")
    words = ["-m", "evmperf", "ab", file, "--b", "args:quiet", "-k", "default_rootfs"]
    words += ["--results", tmp_path / "ab"]
    log, environment = tmp_path / "ab.log", lab.environment
    process = programs.start(log, sys.executable, *words, environment=environment, LG_PLACE="one")
    try:
        until(lambda: boots_for_long(board))
        process.terminate()
        assert process.wait(120 * slowness()) == 2, log.read_text()
        assert not board.is_on
        assert lab.holder("one") == ""
        (run,) = (tmp_path / "ab").glob("*/*/run.json")
        assert spool.read_run(run.parent).facts.interrupted_by == "SIGTERM"
        assert "evmperf ab --resume" in log.read_text()
    finally:
        programs.end(process)


def test_a_held_board_with_nothing_left_to_measure_is_switched_off(lab, measure, board):
    # A night has it back from somebody who took it after the last case.
    with contextlib.closing(Claim.take(Wanted("one", lab.address), "night-1")) as claim:
        board.switch(on=True)
        cases = [f"boot_time_mmcsd/{case}" for case in ("default_rootfs", "default_rootfs_quiet")]
        left_out = [word for case in cases for word in ("--leave-out", case)]
        session = measure("-k", "boot_time_mmcsd and default_rootfs", *left_out, **claim.environment)
        assert session.wait() == 5, session.said
        assert not board.is_on
        claim.check()


@pytest.mark.parametrize("end", ["terminated", "kicked"])
def test_a_provisioning_that_is_ended_leaves_the_board_off(lab, board, tmp_path, end):
    command = "touch writing; while [ ! -e go ]; do sleep 0.1; done # {image}"
    file = lab.board_file(tmp_path / "scripted.yaml", image={"command": command})
    image = imagelab.build(tmp_path / "a.wic")
    words = ["-m", "evmperf", "image", "install", file, image]
    log = tmp_path / "log"
    # Labgrid keeps one connection a process: this one has a process of its own.
    process = programs.start(log, sys.executable, *words, environment=lab.environment, LG_PLACE="one")
    try:
        until((tmp_path / "writing").exists)
        if end == "kicked":
            switched = list(board.switched)
            lab.kick("one", "bob")
            (tmp_path / "go").touch()
            assert process.wait(120 * slowness()) == 3, log.read_text()
            assert re.search(r"one was (taken by here/bob|released by another)", log.read_text())
            assert (board.switched, lab.holder("one")) == (switched, "here/bob")
        else:
            process.terminate()
            assert process.wait(120 * slowness()) == 2, log.read_text()
            assert (board.switched[-1], lab.holder("one")) == (False, "")
    finally:
        programs.end(process)
