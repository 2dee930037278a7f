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
    """A function that makes a runner; keywords go to the bench, or else to the runner."""

    def make_runner(scripted=(), *, results=tmp_path, shell=None, **more):
        bench = {name: more.pop(name) for name in ("reach", "boots", "tester", "meter") if name in more}
        local = LocalBench(board, shell or LocalShell(tmp_path / "board", scripted), **bench)
        spool = Spool(results, Run("fake-1", "fake-evm", "quick"))
        return Runner(local, spool, "quick", ["dd", "no-such-tool"], **more)

    return make_runner
