"""A runner whose board is a shell of this machine."""

import pytest

from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool
from evmperf.model.run import Run
from selftests.support.boardfiles import fake_board
from selftests.support.fakes import LocalBench, LocalShell


@pytest.fixture
def board(tmp_path):
    boot = {"medium": "sd", "max_failures": 2}
    return fake_board(tmp_path / "fake.yaml", "boot", "emmc", boot=boot)


@pytest.fixture
def lab(tmp_path, board):
    """A function that makes a runner; keywords go to the bench."""

    def make_runner(scripted=(), *, results=tmp_path, shell=None, repeats=None, **bench):
        shell = shell or LocalShell(tmp_path / "board", scripted)
        spool = Spool(results, Run("fake-1", "fake-evm", "quick"))
        local = LocalBench(board, shell, **bench)
        return Runner(local, spool, "quick", ["dd", "no-such-tool"], repeats=repeats)

    return make_runner
