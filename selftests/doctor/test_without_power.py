"""`evmperf doctor` on boards whose power nobody switches: as found, reset by software, over SSH."""

import getpass
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.lab.desk.examination import Examination
from evmperf.lab.desk.finding import CheckOutcome
from evmperf.measure import boardfile

BOOTS = {"power switch", "U-Boot", "command line"}
LINUX = ("Linux", "files", "scratch", "tools")


def examine(folder: Path, power: str, resources: dict, drivers: dict):
    main = {
        "features": ["crypto"],
        "options": {
            "board": {"name": "desk", "title": "Desk", "description": "one", "profile": "quick"},
            "boot": {"medium": "sd", "power": power},
        },
        "resources": resources,
        "drivers": {**drivers, "BootStrategy": {"roots": {}, "uboot_timeout": 10, "boot_timeout": 10}},
    }
    imports = ["evmperf.lab.console", "evmperf.lab.shell", "evmperf.lab.strategy"]
    file = folder / "desk.yaml"
    file.write_text(yaml.safe_dump({"imports": imports, "targets": {"main": main}}, sort_keys=False))
    boards.load(file)
    return {found.step: found for found in Examination(boardfile.named(str(file))).findings()}


def good(found):
    wrong = [f for name in LINUX if (f := found[name]).outcome in (CheckOutcome.BAD, CheckOutcome.UNCHECKED)]
    assert [f"{f.step}: {f.text}" for f in wrong if f.step != "tools"] == []


@pytest.fixture
def fake(fake):
    """It is on."""
    fake.pace_s = 0.05
    fake.switch(True)
    fake._come_up()
    return fake


def console(fake):
    port = {"host": "127.0.0.1", "port": fake.port, "protocol": "raw", "speed": 10_000_000}
    shell = {"login_timeout": 5, "await_login_timeout": 1}
    drivers = {"StampedSerialDriver": {}, "EvmUBootDriver": {}, "EvmShellDriver": shell}
    return {"NetworkSerialPort": port}, drivers


def test_a_board_without_power_is_looked_at_as_it_is(fake, tmp_path):
    session = Path(fake.disk, "step", "step-beef")
    session.parent.mkdir()
    session.touch()
    found = examine(tmp_path, "none", *console(fake))
    good(found)
    assert session.exists(), "a session measures there"
    assert not BOOTS & set(found)
    assert found["console"].outcome is CheckOutcome.OK
    assert fake.switched == [True]


def test_a_board_that_is_reset_by_software_is_reset_once_and_left_on(fake, tmp_path):
    found = examine(tmp_path, "reset", *console(fake))
    good(found)
    assert {found[step].outcome for step in ("power switch", "U-Boot")} == {CheckOutcome.OK}
    assert fake.typed.count("reboot") == 1
    assert fake.is_on


def test_a_board_over_ssh_alone_needs_no_console(tmp_path, sshd):
    service = {"address": "127.0.0.1", "username": getpass.getuser(), "port": sshd.port}
    key = {"keyfile": str(sshd.folder / "user")}
    found = examine(tmp_path, "none", {"NetworkService": service}, {"SSHDriver": key})
    good(found)
    assert not (BOOTS | {"console"}) & set(found)
