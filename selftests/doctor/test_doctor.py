"""`evmperf doctor` on boards made of threads: each step when all is well, and when it is not."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.commands.cli.main import main
from evmperf.lab.desk import examination, software
from evmperf.lab.desk.examination import Examination
from evmperf.lab.desk.finding import CheckFinding, CheckOutcome, exit_status
from evmperf.measure import boardfile
from evmperf.model.errors import Kind
from evmperf.model.exits import ExitStatus
from selftests.replay import texts
from selftests.support.boardfiles import console_and_power
from selftests.support.fakeboard import FakeBoard
from selftests.support.ports import free_port
from selftests.support.replayboard import Play, replay_lab

BEFORE = ["board file", "coordinator", "place", "console"]
LABS = yaml.safe_load(Path(__file__).with_name("labs.yaml").read_text())
ON_THE_BOARD = ["Linux", "command line", "files", "tools"]
REPLAYED = {"silence_timeout": 2, "kernel_timeout": 10, "boot_timeout": 5, "uboot_timeout": 10}


@pytest.fixture
def write(write_file, fake, switch):
    """A function that writes the board file of a scripted board; keywords are its options."""

    def write_it(features: str = "boot", **options: Any) -> Path:
        limits = {f"{what}_timeout": 2 for what in ("uboot", "kernel", "boot", "power")}
        drivers = {
            "NetworkPowerDriver": {"delay": 0.0},
            "StampedSerialDriver": {},
            "EvmUBootDriver": {},
            "EvmShellDriver": {"login_timeout": 1, "await_login_timeout": 1},
            "K3BootStrategy": {**limits, "silence_timeout": 1, "roots": {}, "media": {"sd": []}},
        }
        resources = console_and_power(fake.port, switch.port, 115200)
        return write_file(features, resources, drivers, **options)

    return write_it


def examine(file: Path, **more: Any) -> dict[str, CheckFinding]:
    return {found.step: found for found in Examination(boardfile.named(str(file)), **more).findings()}


def outcomes(found: dict[str, CheckFinding], steps: list[str]) -> set[CheckOutcome]:
    return {found[step].outcome for step in steps}


def check_bad(finding: CheckFinding, kind: Kind, sentence: str) -> None:
    assert (finding.outcome, finding.kind) == (CheckOutcome.BAD, kind)
    assert re.search(sentence, finding.text), finding.text


def test_a_lab_that_works(write, fake):
    found = examine(write())
    assert list(found)[:7] == [*BEFORE, "power switch", "U-Boot", "Linux"]
    assert outcomes(found, [*BEFORE, *ON_THE_BOARD]) == {CheckOutcome.OK}
    assert not {"scratch", "tester", "meter"} & {step.partition(" ")[0] for step in found}
    assert not [line for line in fake.typed if "saveenv" in line]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: str(lab.get("bad", "notes"))[:40])
def test_what_is_wrong_in_a_lab_is_named(write, fake, switch, monkeypatch, lab):
    switch.broken = lab.get("switch", "")
    fake.boots = lab.get("boots", [])
    file = write(lab.get("features", "boot"), **lab.get("options", {}))
    right, wrong = lab.get("edit", ("", ""))
    file.write_text(file.read_text().replace(right, wrong))
    for name, value in lab.get("variables", {}).items():
        monkeypatch.setenv(name, value)
    found = examine(file)
    for step, (kind, sentence) in lab.get("bad", {}).items():
        check_bad(found[step], Kind(kind), sentence)
    for step, words in lab.get("notes", {}).items():
        assert found[step].outcome is CheckOutcome.NOTE
        assert words in found[step].text
    assert outcomes(found, lab.get("ok", [])) <= {CheckOutcome.OK}
    assert outcomes(found, lab.get("unchecked", [])) <= {CheckOutcome.UNCHECKED}
    assert CheckOutcome.UNCHECKED not in outcomes(found, ["clock", "real time"])
    assert {step: found[step].text for step in lab.get("said", {})} == lab.get("said", {})
    assert not {*lab.get("missing", [])} & {*found}
    assert exit_status(found.values()) == lab.get("status", exit_status(found.values()))


def test_the_switch_of_another_board(write, fake, switch):
    fake.switch(True)
    fake._take("x")  # at U-Boot's prompt
    other = FakeBoard()
    switch.board = other
    try:
        found = examine(write())
    finally:
        other.close()
    check_bad(found["power switch"], Kind.LAB, "off, .*answers.*outlet")


def test_a_board_that_talks_on_when_it_is_off(write, fake, monkeypatch):
    monkeypatch.setattr(examination, "_QUIET_S", 5.0)  # on a busy host the talker gets no turn for long
    ended = threading.Event()

    def talk() -> None:
        while not ended.wait(0.02):
            fake.say("[   99.000000] still here\r\n")

    talker = threading.Thread(target=talk)
    talker.start()
    try:
        found = examine(write())
    finally:
        ended.set()
        talker.join()
    check_bad(found["power switch"], Kind.LAB, "off, .*still prints")


@pytest.mark.parametrize(
    ("said", "bad"),
    [
        ("", (Kind.LAB, "silent after power-on.*another UART")),
        (b"\xf8\x80\xfe\x00\x86\xe6" * 9, (Kind.LAB, r"nothing readable.*115200 baud")),
        ("Sciserver started\r\n" * 3, (Kind.BOARD, "boot loader.*another UART")),
    ],
    ids=["nothing", "the wrong speed", "another UART"],
)
def test_a_console_that_is_not_the_board_s(write, fake, monkeypatch, said, bad):
    monkeypatch.setattr(fake, "switch", lambda on: on and said and fake.say(said))
    found = examine(write())
    good = found["power switch"].outcome is CheckOutcome.OK
    check_bad(found["U-Boot" if good else "power switch"], *bad)


def test_a_console_that_is_not_there(write, fake):
    file = write()
    fake.close()
    found = examine(file)
    check_bad(found["console"], Kind.LAB, ".")
    assert found["power switch"].text == "not checked: it needs console"


def test_a_coordinator_that_is_not_there(monkeypatch):
    port = free_port()
    monkeypatch.setenv("LG_COORDINATOR", f"127.0.0.1:{port}")
    found = examine(boards.find("am64x"))
    check_bad(
        found["coordinator"], Kind.LAB, f"no Labgrid coordinator answers at 127.0.0.1:{port}.*LG_COORDINATOR"
    )
    assert found["place"].outcome is CheckOutcome.UNCHECKED


# What U-Boot and Linux say, on boards that replay


@pytest.fixture
def replayed(monkeypatch):
    """A function that examines a board which replays."""

    def examine_it(linux: bytes, **play: Any) -> dict[str, CheckFinding]:
        with replay_lab(Play(texts.LOADER, linux, **play), "am64x", **REPLAYED) as (_, path):
            return examine(path)

    return examine_it


def test_a_script_that_overwrites_the_arguments_is_no_hindrance(replayed):
    found = replayed(texts.SD, environment=texts.ARGS_ALL)
    assert outcomes(found, ["Linux", "command line", "root medium"]) == {CheckOutcome.OK}


STOPPED = {**texts.ARGS_ALL, "args_all": "setenv optargs earlycon; echo 'ready'"}


@pytest.mark.parametrize(
    ("linux", "environment", "bad"),
    [
        (texts.SD, STOPPED, ("command line", "without evmperf.lab.doctor .args_all in U-Boot's env")),
        (texts.EMMC, {"x": "${optargs}"}, ("root medium", "another medium than sd")),
    ],
    ids=["arguments", "medium"],
)
def test_the_wrong_boot_leaves_the_rest_to_be_checked(replayed, linux, environment, bad):
    found = replayed(linux, environment=environment)
    step, sentence = bad
    check_bad(found.pop(step), Kind.LAB, sentence)
    good = [name for name in ("Linux", "command line", "root medium") if name in found]
    assert outcomes(found, good) == {CheckOutcome.OK}
    assert CheckOutcome.UNCHECKED not in outcomes(found, ["scratch emmc", "tools"])


# What is on and beside the board


def test_scratch_on_another_kind_of_disk_is_named(write):
    disk = next((d for d in Path("/dev").glob("[sv]d[a-z]") if d.is_block_device()), None)
    if disk is None:
        pytest.skip("this machine shows no disk")
    found = examine(write("boot emmc", emmc={"device": str(disk), "scratch": str(disk), "whole_disk": True}))
    check_bad(found["scratch emmc"], Kind.LAB, f"{disk}.* is not on an eMMC")


def test_flash_is_looked_for_by_its_name():
    checks = software.scratch_checks(boards.load(boards.find("virtual-ospi")))
    assert "/proc/mtd" in checks["ospi"]
    assert not [check for check in checks.values() if "umount" in check or "ubidetach" in check]


# The command


def test_the_command_prints_a_line_a_step_and_ends_with_a_count(write, capsys, fake):
    fake.boots = ["mute"]
    assert main(["doctor", str(write())]) == ExitStatus.FAILED
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("bad  U-Boot ")]
    assert re.fullmatch(r"fake-evm: \d+ ok, \d+ notes, 1 bad, 5 not checked", lines[-1])
