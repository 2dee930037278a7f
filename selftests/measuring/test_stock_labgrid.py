"""A virtual EVM that is reached by nothing but stock Labgrid: no line of evmperf's in its env file."""

import statistics

import pytest
import yaml

from evmperf.boards.console.marks import allowed_s
from evmperf.model.results import Status
from selftests.support import virtualbench
from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

BOOTS = 4


def stock(ports):
    """An env file as Labgrid's documentation has it."""
    power = {"model": "rest", "host": f"http://127.0.0.1:{ports.power_port}/power/{{index}}", "index": "0"}
    serial = {"host": "127.0.0.1", "port": ports.serial_port, "protocol": "raw", "speed": 115200}
    login = {"prompt": r"root@[^:]+:[^#]*# ", "login_prompt": "login: ", "username": "root"}
    return {
        "targets": {
            "main": {
                "resources": {"NetworkSerialPort": serial, "NetworkPowerPort": power},
                "drivers": {
                    "NetworkPowerDriver": {"delay": 0.0},
                    "SerialDriver": {},
                    "UBootDriver": {"prompt": "=> ", "boot_command": "boot", "login_timeout": 60},
                    "ShellDriver": {**login, "login_timeout": 120},
                    "UBootStrategy": {},
                },
            }
        }
    }


def boot_times(session):
    """The boot times of a session in seconds, and the largest error of their marks. Cycles with a mark
    that was refused on a busy host were repeated, and are not counted.
    """
    (boots,) = [result for result in session.measured() if result.benchmark == "boot_time_mmcsd"]
    return boots.values("boot_time"), boots.error("boot_time")


def test_boots_and_emmc_are_measured_through_the_labs_own_strategy(tmp_path):
    with virtualbench.running("virtual", "stock") as bench:
        file = tmp_path / "stock.yaml"
        file.write_text(yaml.safe_dump(stock(bench.record)))
        (tmp_path / "ours").mkdir()
        ours = virtualbench.board_file(bench, "virtual", tmp_path)
        options = ["--profile=quick", f"--boots={BOOTS}"]
        by_lab = whole(file, tmp_path, "disk_reads and emmc or boot_time", *options)
        by_evmperf = whole(ours, tmp_path / "ours", "boot_time and default_rootfs", *options)
    measured = {result.benchmark: result for result in by_lab.measured()}
    assert set(measured) == {"boot_time_mmcsd", "disk_reads"}
    assert all(result.status is Status.MEASURED for result in measured.values())
    (times, error), (others, _) = boot_times(by_lab), boot_times(by_evmperf)
    assert len(times) == len(others) == BOOTS
    assert error <= allowed_s(max(times))
    # Boots of one virtual EVM differ by more than their marks' errors: the series must overlap.
    spread = max(statistics.stdev(times), statistics.stdev(others), error)
    assert abs(statistics.mean(times) - statistics.mean(others)) < 4 * spread
