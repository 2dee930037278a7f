"""The keeper against a real coordinator and exporter: who may hold a board, and who has lost it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from evmperf.lab.keeping import locks, wire
from evmperf.lab.keeping.claim import JOIN, Claim, KeeperLink
from evmperf.lab.keeping.wanted import Holder, Wanted, device_key
from evmperf.model.errors import BoardLost, LabError, UsageError
from selftests.support.placelab import PlaceLab, holders, until
from selftests.support.programs import REPOSITORY

NOTICE_S = 30.0
"""How late a notice may come here, where much else runs; `make bench` measures how late it is."""


@contextlib.contextmanager
def held(wanted, run="run-1", **more):
    claim = Claim.take(wanted, run, **more)
    try:
        yield claim
    finally:
        claim.release()


@pytest.fixture
def place(lab):
    return Wanted("one", lab.address)


HOLD = """
import sys, time
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import Wanted
claim = Claim.take(Wanted(sys.argv[1], sys.argv[2], tuple(sys.argv[3:])), "run-elsewhere")
print("held", flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def holding_process(*wanted):
    process = subprocess.Popen([sys.executable, "-c", HOLD, *wanted], cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_run_is_in_the_holders_name(lab, place):
    with held(place) as claim:
        assert lab.holder("one") == "here/me+run-1"
        assert (claim.host, claim.user) == ("here", "me+run-1")
        claim.check()
    assert lab.holder("one") == ""


def test_a_kicked_holder_knows_at_once_and_by_whom(lab, place):
    with held(place) as claim:
        lost = threading.Event()
        claim.on_lost = lambda sentence: lost.set()
        lab.client("one", "release", "--kick", user="bob")
        assert lost.wait(NOTICE_S)
        with pytest.raises(BoardLost, match="released by another user"):
            claim.check()
        lab.client("one", "acquire", user="bob")
        until(lambda: "bob" in claim.lost)
        assert re.search(r"one .*bob.* \d\d:\d\d", claim.lost)
    assert lab.holder("one") == "here/bob"
    lab.client("one", "release", user="bob")


def test_two_runs_of_one_user_are_two_holders(lab, place):
    soon = time.time() // 60 * 60 + 1830  # kept in whole seconds, so not at a minute's end
    with held(place, until=soon), pytest.raises(UsageError) as refused:
        Claim.take(place, "run-2")
    clock = time.strftime("%H:%M", time.localtime(soon))
    for word in ("one is held by me on here (run run-1) since ", clock, "--wait 30m"):
        assert word in str(refused.value)


def test_a_place_of_somebody_else_says_whose(lab, place):
    lab.client("one", "acquire", user="bob")
    with pytest.raises(UsageError, match=r"one .* bob on here .*\d\d:\d\d: wait"):
        Claim.take(place, "run-1")
    lab.client("one", "release", user="bob")


def test_a_place_without_devices_is_not_held(lab):
    lab.client("bare", "create")
    with pytest.raises(LabError, match="the place bare has no devices"):
        Claim.take(Wanted("bare", lab.address), "run-1")
    assert lab.holder("bare") == ""
    lab.client("bare", "delete")


def test_what_a_user_acquired_by_hand_is_used_and_stays_theirs(lab, place):
    lab.client("one", "acquire")
    with held(place) as claim:
        assert (claim.user, claim.borrowed) == ("me", True)
        with pytest.raises(UsageError, match=r"one .*run run-1\)"):
            Claim.take(place, "run-2")
    assert lab.holder("one") == "here/me"
    with held(place) as claim:
        lab.client("one", "release")
        until(lambda: claim.lost)


def test_a_board_of_somebody_who_is_done_goes_to_who_waits(lab, place):
    said = []
    with held(place):
        waiting = threading.Thread(
            target=lambda: said.append(Claim.take(place, "run-2", wait_s=60, tell=said.append))
        )
        waiting.start()
        until(lambda: said)
        assert "(run run-1)" in said[0]
    waiting.join(30)
    said[1].check()
    assert lab.holder("one") == "here/me+run-2"
    said[1].release()
    assert "waiting" not in lab.client("", "reservations")


def test_who_waits_for_long_keeps_its_turn(lab, place):
    """A reservation ends after 60 s unless it is asked for, and anybody may cancel it."""

    def queued():
        shown = lab.client("", "reservations")
        return dict(re.findall(r"token: (\w+)\n(?:.*\n)*?  timeout: (.+)", shown))

    lab.client("one", "acquire", user="bob")
    taken = []
    waiting = threading.Thread(
        target=lambda: taken.append(Claim.take(place, "run-2", wait_s=120, priority=-1.0))
    )
    waiting.start()
    until(queued, 60)
    ((token, ends),) = queued().items()
    until(lambda: queued()[token] > ends, 60)
    lab.client("", "cancel-reservation", token)
    until(lambda: queued() and token not in queued(), 60)
    lab.client("one", "release", user="bob")
    waiting.join(60)
    taken[0].check()
    assert lab.holder("one") == "here/me+run-2"
    taken[0].release()


def test_who_waits_in_vain_is_told_by_whom(place):
    with held(place), pytest.raises(UsageError, match="one is held by me"):
        Claim.take(place, "run-2", wait_s=0.5)


def test_a_dead_holders_place_is_free(lab, place):
    with holding_process("one", lab.address) as process:
        assert lab.holder("one") == "here/me+run-elsewhere"
        with contextlib.ExitStack() as stack:
            observer = KeeperLink()
            stack.callback(observer.close)
            process.kill()
            free_after = until(lambda: not acquired(observer, lab, "one"))
    assert free_after < NOTICE_S


def acquired(link, lab: PlaceLab, name):
    places = link.ask("places", coordinator=lab.address)["places"]
    return next(place["acquired"] for place in places if place["name"] == name)


def test_a_dead_keeper_is_noticed_and_leaves_no_lock_behind(lab, place):
    with held(place) as claim:
        (keeper,) = holders(wire.socket_path().with_name(wire.socket_path().name + ".lock"))
        os.kill(keeper, signal.SIGKILL)
        until(lambda: claim.lost)
        with pytest.raises(BoardLost, match=r"keeper .*ended"):
            claim.check()
        assert lab.holder("one") == "here/me+run-1"
        with held(place, "run-2"):
            assert lab.holder("one") == "here/me+run-2"


def test_a_coordinator_that_goes_takes_all_holds_with_it(lab, place):
    with held(place) as claim:
        lost = threading.Event()
        claim.on_lost = lambda sentence: lost.set()
        lab.end("coordinator")
        assert lost.wait(NOTICE_S)
        assert "coordinator" in claim.lost
        lab.restart()
        with held(place, "run-2") as second:
            with pytest.raises(BoardLost):
                claim.check()
            second.check()


def test_a_night_shares_its_board_with_its_session(lab, place, monkeypatch):
    with held(place, "night-1") as night:
        monkeypatch.setenv(JOIN, night.token)
        with held(place, "run-1") as session:
            assert session.user == "me+night-1"
            session.check()
        night.check()
        assert lab.holder("one") == "here/me+night-1"


# Boards without a coordinator


def test_a_local_board_has_one_holder(lab):
    wanted = Wanted("desk", devices=(device_key("tty at 127.0.0.1"), "relay 3"))
    with holding_process("desk", "", *wanted.devices):
        with pytest.raises(UsageError, match=r"desk .*run run-elsewhere"):
            Claim.take(wanted, "run-1")
        (record,) = locks.held()
        assert record.run == "run-elsewhere"
    with held(wanted, wait_s=5) as claim:
        claim.doing("emmc_ext4 4k", time.time() + 60)
        until(lambda: locks.held()[0].doing == "emmc_ext4 4k")
    assert locks.held() == []


def test_a_shared_device_keeps_two_boards_apart(lab):
    with held(Wanted("a", devices=("relay 1", "tty 1"))), pytest.raises(UsageError, match="b is held by"):
        Claim.take(Wanted("b", devices=("relay 1", "tty 2")), "run-2")


@pytest.mark.parametrize("name", ["lab/me+run-1", "lab/me"])
def test_a_holders_name_is_read_as_it_is_written(name):
    holder = Holder.named(name)
    assert f"{holder.host}/{holder.labgrid_user}" == name
    assert holder.by_hand == "lab/me"


def test_the_keeper_ends_when_nobody_needs_it(lab):
    with held(Wanted("desk", devices=("relay 9",))):
        lock = wire.socket_path().with_name(wire.socket_path().name + ".lock")
        assert holders(lock)
    until(lambda: not holders(lock))
