"""Boards against a real coordinator and exporter: who may hold one, and who has lost it."""

from __future__ import annotations

import contextlib
import re
import time

import pytest

from evmperf.commands.cli.main import main
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import JOIN, Claim
from evmperf.lab.keeping.wanted import Wanted
from evmperf.model.errors import LabError, UsageError
from selftests.keeping.holders import other
from selftests.support.placelab import until

SOON = time.time() + 1800


def held(wanted, run="run-1", **more):
    return contextlib.closing(Claim.take(wanted, run, **more))


@pytest.fixture
def place(lab):
    return Wanted("one", lab.address)


def test_one_process_holds_several_places(lab, place):
    with held(place) as first, held(Wanted("two", lab.address)) as second:
        assert [lab.holder("one"), lab.holder("two")] == ["here/me+run-1"] * 2
        lab.kick("two", "bob")
        until(lambda: second.lost)
        first.check()
    assert [lab.holder("one"), lab.holder("two")] == ["", "here/bob"]
    lab.client("two", "release", user="bob")


def test_a_second_coordinator_is_refused_and_not_taken_for_the_first(lab, place):
    with held(place), pytest.raises(UsageError, match="boards of two coordinators need two calls"):
        Claim.take(Wanted("two", lab.address.replace("127.0.0.1", "localhost")), "run-1")


def test_two_runs_of_one_user_are_two_holders(lab, place):
    with held(place) as claim, other(place, wait_s=0.5) as second:
        claim.expect(SOON)
        refused = second.refused()  # after its wait
    assert refused.startswith("refused (usage): ")
    assert "one is held by here/me+run-1" in refused
    assert f", expected to end at {locks.moment(SOON)}: wait for it with --wait 30m" in refused


def test_a_holder_on_another_host_is_named_with_its_start(place, tmp_path):
    with held(place), other(place, LG_HOSTNAME="there", EVMPERF_LOCKS=str(tmp_path)) as second:
        assert re.search(r"one is held by here/me\+run-1 since .*\d\d:\d\d: wait", second.refused())


def test_a_place_without_devices_is_not_held(lab):
    lab.client("bare", "create")
    with pytest.raises(LabError, match="the place bare has no devices"):
        Claim.take(Wanted("bare", lab.address), "run-1")
    assert lab.holder("bare") == ""


def test_what_a_user_acquired_by_hand_is_used_and_stays_theirs(lab, place):
    lab.client("one", "acquire")
    with held(place) as claim, other(place) as second:
        assert claim.name == "here/me"
        assert re.search(r"one is held by here/me\+run-1 since", second.refused())
    assert lab.holder("one") == "here/me"
    with held(place) as claim:
        lab.client("one", "release")
        until(lambda: claim.lost)


@pytest.mark.parametrize(
    "devices", [(), tuple(f"relay {number}" for number in range(16))], ids=["place", "local"]
)
def test_of_many_who_take_a_board_at_once_one_has_it(lab, place, devices):
    board = Wanted("desk", devices=devices) if devices else place
    with contextlib.ExitStack() as stack:
        takers = [stack.enter_context(other(board, f"run-{number}")) for number in range(5)]
        first = [taker.line() for taker in takers]
        (winner,) = (number for number, line in enumerate(first) if line == "held")
        assert lab.holder("one") == ("" if devices else f"here/me+run-{winner}")
        losers = [taker for number, taker in enumerate(takers) if number != winner]
        assert all("held by here/me+run-" in loser.refused() for loser in losers)
        takers[winner].release()
    assert lab.holder("one") == ""


def test_a_place_that_is_reserved_for_somebody_else_is_waited_for(lab, place):
    reserved = lab.client("", "reserve", "--wait", "board=fake", "name=one", user="bob")
    (token,) = re.findall(r"Reservation '(\w+)'", reserved)
    with other(place, wait_s=60) as waiting:
        assert re.search("one is held by a reservation", waiting.line())
        lab.client("", "cancel-reservation", token)
        assert waiting.line() == "held"
        waiting.release()


def test_the_place_of_a_namesake_on_another_host_is_not_taken_back(lab, place, tmp_path):
    with other(place, "run-there", EVMPERF_LOCKS=str(tmp_path)) as there:  # a container of the same name
        assert there.line() == "held"
        with pytest.raises(UsageError, match=r"held by here/me\+run-there"):
            Claim.take(place, "run-1")
        there.release()


def test_who_waits_is_told_of_a_coordinator_that_goes(lab, place):
    lab.client("one", "acquire", user="bob")
    with other(place, wait_s=600) as waiting:
        assert "one is held by here/bob" in waiting.line()
        lab.end("coordinator")
        assert "no Labgrid coordinator answers" in waiting.refused()
    lab.restart()


@pytest.mark.parametrize("local", [False, True])
def test_a_process_that_a_holder_starts_shares_the_board(lab, place, local):
    board = Wanted("desk", devices=("relay 5",)) if local else place
    with held(board) as holder:
        with other(Wanted("desk-2", devices=("relay 7",)), **holder.environment) as beside:
            assert beside.line() == "held"  # another board is its own
            assert any(line.startswith("desk-2 is held by here/me+run-2 since ") for line in locks.held())
            beside.release()
        with other(board, **holder.environment) as child, other(board) as stranger:
            assert "held by here/me+run-1" in stranger.refused()
            assert child.line() == "held"
            (before,) = locks.held()
            assert child.do("expect", str(SOON)) == "done"
            assert locks.held() == [f"{before}, expected to end at {locks.moment(SOON)}"]
            child.release()
        holder.check()
        for file in (":0", ":none", ":" + "9" * 30) if local else ():  # it inherited no lock
            foreign = re.sub(r":\d+", file, holder.environment[JOIN])
            with other(board, **{**holder.environment, JOIN: foreign}) as stranger:
                assert "held by here/me+run-1" in stranger.refused()
        if not local:
            assert lab.holder("one") == "here/me+run-1"
            with other(board, **holder.environment) as child:
                assert child.line() == "held"
                lab.client("one", "release", "--kick", user="bob")
                assert child.line().startswith("told: lost: one was released")
            with other(board, **holder.environment) as child:
                assert re.search("refused .lab.: one was released", child.refused())
        left = holder.environment
    with other(board, "run-3", **left) as child:  # the holder has ended: it holds the board itself
        assert child.line() == "held"
        assert "held by here/me+run-3" in locks.held()[0]
        child.release()


@pytest.mark.parametrize("local", [False, True])
def test_nobody_gets_a_board_while_the_session_of_a_killed_holder_is_on_it(lab, place, local):
    board, said = Wanted("desk", devices=("relay 6",)) if local else place, []
    code = "import sys; sys.stdin.read()"
    with other(board, "run-killed", CHILD=code) as holder:
        assert holder.line() == "held"
        assert holder.do("child") == "done"
        holder.process.kill()
        holder.process.wait()
        with pytest.raises(UsageError, match=r"held by here/me\+run-killed"):
            Claim.take(board, "run-1")
        holder.process.stdin.close()  # the child's input, too
        with held(board, wait_s=60, tell=said.append):
            pass
    assert local or "taken back" in said[-1]


def test_who_has_which_board_and_until_when(lab, place, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("LG_COORDINATOR")
        assert main(["lab", "who"]) == 0
    assert capsys.readouterr().out == "no board is held here\n"
    lab.client("two", "acquire", user="bob")
    soon = time.time() + 3600
    with held(place) as claim:
        claim.expect(soon)
        assert main(["lab", "who"]) == 0
        one, two = capsys.readouterr().out.splitlines()
    since = r"since \d{4}-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(rf"one is held by here/me\+run-1 {since}{locks.ENDS}{locks.moment(soon)}", one)
    assert re.fullmatch(f"two is held by here/bob {since}", two)
    lab.client("two", "release", user="bob")


# Boards without a coordinator


def test_a_shared_device_keeps_two_boards_apart(lab):
    with held(Wanted("a", devices=("relay 1", "tty 1"))), pytest.raises(UsageError, match="b is held by"):
        Claim.take(Wanted("b", devices=("relay 1", "tty 2")), "run-2")
