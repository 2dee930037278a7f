"""`evmperf doctor` on boards whose power nobody switches: as found, reset by software, over SSH."""

import getpass
from pathlib import Path

import pytest

from evmperf.lab.desk.finding import CheckOutcome
from selftests.doctor.test_doctor import examine

BOOTS = {"power switch", "U-Boot", "command line"}
LINUX = ("Linux", "files", "tools")


@pytest.fixture
def look(write_file):
    def look_at(power: str, resources: dict, drivers: dict):
        strategy = {"roots": {}, "uboot_timeout": 10, "boot_timeout": 10}
        boot = {"medium": "sd", "power": power}
        return examine(write_file("crypto", resources, {**drivers, "BootStrategy": strategy}, boot=boot))

    return look_at


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


def test_a_board_without_power_is_looked_at_as_it_is(look, fake):
    session = Path(fake.disk, "step", "step-beef")
    session.parent.mkdir()
    session.touch()
    found = look("none", *console(fake))
    good(found)
    assert session.exists(), "a session measures there"
    assert not BOOTS & set(found)
    assert found["console"].outcome is CheckOutcome.OK
    assert fake.switched == [True]


def test_a_board_that_is_reset_by_software_is_reset_once_and_left_on(look, fake):
    found = look("reset", *console(fake))
    good(found)
    assert {found[step].outcome for step in ("power switch", "U-Boot")} == {CheckOutcome.OK}
    assert fake.typed.count("reboot") == 1
    assert fake.is_on


def test_a_board_over_ssh_alone_needs_no_console(look, sshd):
    service = {"address": "127.0.0.1", "username": getpass.getuser(), "port": sshd.port}
    key = {"keyfile": str(sshd.folder / "user")}
    found = look("none", {"NetworkService": service}, {"SSHDriver": key})
    good(found)
    assert not (BOOTS | {"console"}) & set(found)
