"""The reset line of a debug probe: a real OpenOCD with its dummy adapter behind Labgrid's driver."""

import shutil
import subprocess

import pytest
from labgrid import Target
from labgrid.driver import OpenOCDDriver
from labgrid.resource.udev import USBDebugger

from evmperf.lab.probe import OpenOcdResetDriver

pytestmark = pytest.mark.skipif(not shutil.which("openocd"), reason="apt-get install openocd")
DUMMY = """log_output {log}
debug_level 3
adapter driver dummy
transport select jtag
reset_config {lines}
jtag newtap soc tap -irlen 4
"""


@pytest.fixture
def probe(tmp_path):
    def make(lines):
        config = tmp_path / "probe.cfg"
        config.write_text(DUMMY.format(log=tmp_path / "log", lines=lines))
        target = Target("board")
        USBDebugger(target, None, match={}).avail = True  # no probe is plugged in here
        OpenOCDDriver(target, None, config=str(config))
        driver = OpenOcdResetDriver(target, None, delay=0.1)
        target.activate(driver)
        return driver

    return make


def test_a_probe_asserts_its_reset_line_and_releases_it(probe, tmp_path):
    probe("srst_only").reset()
    said = (tmp_path / "log").read_text()
    asserted = said.index("SRST line asserted")
    assert "SRST line released" in said[asserted:]


def test_a_probe_without_a_reset_line_is_an_error(probe):
    with pytest.raises(subprocess.CalledProcessError):
        probe("none").reset()
