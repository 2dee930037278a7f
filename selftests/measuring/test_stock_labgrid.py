"""A virtual EVM that is reached by nothing but stock Labgrid: no line of evmperf's in its env file."""

import re
from pathlib import Path
from string import Template

import pytest

from evmperf.boards.console.marks import allowed_s
from evmperf.model.results import Status
from selftests.support import virtualbench
from selftests.support.sessions import whole
from selftests.support.stamps import Heard

pytestmark = pytest.mark.virtual_evm

BOOTS = 3
STOCK = Path(__file__).with_name("stock.yaml")
"""As Labgrid's documentation has it."""


def boot_times_s(heard):
    """Seconds of each boot on the console, between the last bytes of `Starting kernel ...` and the prompt."""
    for kernel in re.finditer(rb"Starting kernel \.\.\.", heard.said):
        if prompt := re.compile(rb"login: ").search(heard.said, kernel.end()):
            (_, began_ns), (_, ended_ns) = (heard.passed(found.end() - 1) for found in (kernel, prompt))
            yield (ended_ns - began_ns) / 1e9


def test_boots_and_emmc_are_measured_through_the_labs_own_strategy(tmp_path):
    with virtualbench.running("virtual", "stock") as bench:
        file = tmp_path / "stock.yaml"
        ports = {"SERIAL": bench.record.serial_port, "POWER": bench.record.power_port}
        file.write_text(Template(STOCK.read_text()).substitute(ports))
        heard = Heard(bench)
        options = ["--profile=quick", f"--boots={BOOTS}"]
        session = whole(file, tmp_path, "disk_reads and emmc or boot_time", *options)
        true_s = list(boot_times_s(heard))
        heard.close()
    measured = {result.benchmark: result for result in session.measured()}
    assert set(measured) == {"boot_time_mmcsd", "disk_reads"}
    assert all(result.status is Status.MEASURED for result in measured.values())
    boots = measured["boot_time_mmcsd"]
    times_s, error_s = boots.values("boot_time"), boots.error("boot_time")
    assert len(times_s) == BOOTS
    assert error_s <= allowed_s(max(times_s))
    # The bench heard more boots: uncounted ones, and those with a mark that a busy host made inexact.
    heard_s = iter(true_s)
    for time_s in times_s:
        assert any(abs(time_s - one_s) <= 2 * error_s for one_s in heard_s), (times_s, true_s)
