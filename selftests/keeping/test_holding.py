"""One hold over many sessions: nobody gets the board between two rounds."""

import os

import pytest
from evmperf_virtual import envfile

from evmperf.lab.keeping.claim import JOIN, Claim, Holding
from evmperf.lab.keeping.wanted import wanted
from evmperf.model.errors import UsageError


@pytest.fixture
def boards(lab, tmp_path, monkeypatch):
    """Two board files without a coordinator; nothing answers there."""
    monkeypatch.delenv(JOIN, raising=False)
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for number, file in enumerate(files):
        ports = {"serial_port": 50000 + 2 * number, "power_port": 50001 + 2 * number}
        envfile.write(envfile.source("virtual"), file, **ports)
    return files


@pytest.fixture
def elsewhere(monkeypatch):
    """Takes a board as a session that nobody has started for us, and gives it back."""

    def take(board):
        with monkeypatch.context() as patch:
            patch.delenv(JOIN, raising=False)
            Claim.take(wanted(board), "somebody-else").release()

    return take


def test_our_sessions_share_the_board_and_nobody_else_gets_it_between_them(boards, elsewhere):
    with Holding("ab-1") as holding:
        for number in range(2):
            holding.have(str(boards[0]))
            Claim.take(wanted(boards[0]), f"round-{number}").release()
            with pytest.raises(UsageError, match=r"first is held by .*run ab-1"):
                elsewhere(boards[0])
    elsewhere(boards[0])
    assert JOIN not in os.environ


def test_another_board_is_held_in_place_of_the_first(boards, elsewhere):
    with Holding("bisect-1") as holding:
        holding.have(str(boards[0]))
        holding.have(str(boards[1]))
        elsewhere(boards[0])
        with pytest.raises(UsageError, match="second is held by"):
            elsewhere(boards[1])


def test_who_is_started_by_a_holder_shares_its_board_and_takes_another_by_itself(boards, elsewhere):
    with Holding("bisect-1") as outer:
        outer.have(str(boards[0]))
        with Holding("step") as inner:
            inner.have(str(boards[0]))
            inner.have(str(boards[1]))
            with pytest.raises(UsageError, match="second is held by"):
                elsewhere(boards[1])
        elsewhere(boards[1])
        with pytest.raises(UsageError, match="first is held by"):
            elsewhere(boards[0])
        Claim.take(wanted(boards[0]), "round").release()
