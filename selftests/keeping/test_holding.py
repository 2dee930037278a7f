"""One hold over many sessions: nobody else gets the board meanwhile; and who has which board."""

import contextlib
import re
import time

import pytest
from evmperf_virtual import envfile

from evmperf.commands.cli.main import main
from evmperf.lab.keeping import locks
from evmperf.lab.keeping.claim import JOIN, Claim
from evmperf.lab.keeping.wanted import Wanted, placement, variables
from evmperf.model.errors import UsageError


@pytest.fixture
def boards(lab, tmp_path, monkeypatch):
    """What two board files without a coordinator name; nothing answers there."""
    monkeypatch.delenv(JOIN, raising=False)
    files = [tmp_path / "first.yaml", tmp_path / "second.yaml"]
    for number, file in enumerate(files):
        ports = {"serial_port": 50000 + 2 * number, "power_port": 50001 + 2 * number}
        envfile.write(envfile.source("virtual"), file, **ports)
    return map(placement, files)


@contextlib.contextmanager
def holding(board, run):
    with contextlib.closing(Claim.take(board, run)) as claim, variables(claim.environment):
        yield


def test_who_is_started_by_a_holder_shares_its_board_and_takes_another_by_itself(boards, monkeypatch):
    first, second = boards

    def elsewhere(board):
        """Take a board as a session that nobody has started for us, and give it back."""
        with monkeypatch.context() as patch:
            patch.delenv(JOIN, raising=False)
            Claim.take(board, "somebody-else").close()

    with holding(first, "ab-1"):
        for number in range(2):
            Claim.take(first, f"round-{number}").close()
            with pytest.raises(UsageError, match=r"first is held by here/me\+ab-1 since"):
                elsewhere(first)
        with (
            holding(first, "step"),
            holding(second, "step"),
            pytest.raises(UsageError, match=r"second is held by here/me\+step since"),
        ):
            elsewhere(second)
        elsewhere(second)
        with pytest.raises(UsageError, match="first is held by"):
            elsewhere(first)
    elsewhere(first)


def test_who_has_which_board_and_until_when(lab, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("LG_COORDINATOR")
        assert main(["lab", "who"]) == 0
    assert capsys.readouterr().out == "no board is held here\n"
    lab.client("two", "acquire", user="bob")
    soon = time.time() + 3600
    with contextlib.closing(Claim.take(Wanted("one", lab.address), "run-1")) as claim:
        claim.expect(soon)
        assert main(["lab", "who"]) == 0
        one, two = capsys.readouterr().out.splitlines()
    since = r"since \d{4}-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(rf"one is held by here/me\+run-1 {since}{locks.ENDS}{locks.moment(soon)}", one)
    assert re.fullmatch(f"two is held by here/bob {since}", two)
    lab.client("two", "release", user="bob")
