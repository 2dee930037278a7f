import pytest

from evmperf.boards import variation
from evmperf.measure import shellstep, varied
from evmperf.model.errors import LabError
from selftests.support.fakes import LocalShell


def test_a_command_that_fails_is_the_labs_failure(tmp_path):
    shell = LocalShell(tmp_path)
    shellstep.install(shell)
    with pytest.raises(LabError, match=r"run:.*exit status 3 on the board: no such governor"):
        varied.apply(variation.parse(["run:echo no such governor; exit 3"]), shell, shellstep)


def test_arguments_must_be_on_the_running_kernels_command_line():
    wanted = variation.parse(["args:quiet loglevel=3"])
    varied.check(wanted, "console=ttyS0 quiet loglevel=3 ro")
    with pytest.raises(LabError, match=r"args:quiet: .*kernel"):
        varied.check(wanted, "console=ttyS0 loglevel=3 quietly")
