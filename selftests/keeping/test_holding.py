"""One hold over many sessions: nobody else gets the board meanwhile; and who has which board."""

import os
import re
import time

import pytest
from evmperf_virtual import envfile

from evmperf.commands.cli.main import main
from evmperf.lab.keeping.claim import JOIN, Claim, holding
from evmperf.lab.keeping.wanted import Wanted, placement
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
            Claim.take(placement(board), "somebody-else").release()

    return take


def test_who_is_started_by_a_holder_shares_its_board_and_takes_another_by_itself(boards, elsewhere):
    first, second = boards
    with holding(str(first), "ab-1"):
        for number in range(2):
            Claim.take(placement(first), f"round-{number}").release()
            with pytest.raises(UsageError, match=r"first is held by .*run ab-1"):
                elsewhere(first)
        with (
            holding(str(first), "step"),
            holding(str(second), "step"),
            pytest.raises(UsageError, match="second is held by"),
        ):
            elsewhere(second)
        elsewhere(second)
        with pytest.raises(UsageError, match="first is held by"):
            elsewhere(first)
    elsewhere(first)
    assert JOIN not in os.environ


def test_who_has_which_board_and_until_when(lab, capsys):
    assert main(["lab", "who"]) == 0
    assert capsys.readouterr().out == "no board is held here\n"
    claim = Claim.take(Wanted("one", lab.address), "run-1", until=time.time() + 3600)
    try:
        claim.doing("emmc_ext4 4k", time.time() + 3600)
        listed = []

        def is_listed():
            assert main(["lab", "who"]) == 0
            listed[:] = capsys.readouterr().out.splitlines()
            return "emmc_ext4 4k" in listed[-1]

        assert is_listed()
        head, row = listed
        assert head.split() == ["place", "holder", "run", "since", "until", "measures"]
        assert re.fullmatch(r"one +me on here +run-1 +\S+ +(?:\d{4}-\d\d-\d\d )?\S+ +emmc_ext4 4k", row)
    finally:
        claim.release()
