"""The host's side of a gadget: which machine does what, and finding the one right disk."""

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.step import Where
from evmperf.benchmarks.tables.usb_gadget import SHELL
from evmperf.boards import board as boards
from selftests.support import programs

SERIAL = "evmperf-board"


def places(board_file):
    benchmark = catalogue.benchmark("usbdev_hs_slave_read")
    board = boards.load(boards.ENV_DIR / board_file)
    (case, *_) = benchmark.cases("quick")
    return [(s.name, s.where) for s in benchmark.declared_steps(board, case, "quick")]


def test_the_tester_reads_and_the_board_plugs_in_and_out():
    assert places("am62l.yaml") == [
        ("forget", Where.TESTER),
        ("plug", Where.BOARD),
        ("mount", Where.TESTER),
        ("transfer", Where.TESTER),
        ("unmount", Where.TESTER),
        ("unplug", Where.BOARD),
    ]


def test_the_virtual_evm_is_its_own_host():
    assert {where for _, where in places("virtual.yaml")} == {Where.BOARD}


@pytest.fixture
def find(tmp_path):
    """Look for the disk among those of a made-up machine: name, serial number, speed."""

    def find(*disks):
        (tmp_path / "block").mkdir()
        for name, serial, speed in disks:
            usb = tmp_path / "devices" / f"usb-{name}"
            (usb / "host0" / "0:0:0:0").mkdir(parents=True)
            if serial:
                (usb / "serial").write_text(f"{serial}\n")
                (usb / "speed").write_text(f"{speed}\n")
            (tmp_path / "block" / name).mkdir()
            (tmp_path / "block" / name / "device").symlink_to(usb / "host0" / "0:0:0:0")
        command = SHELL("find", serial=SERIAL, mbit=480, wait_s=30).replace(
            "/sys/block", str(tmp_path / "block")
        )
        command = command.replace("tries=30", "tries=0")
        done = programs.run("sh", "-c", f"set -e; {command}; echo found $disk")
        assert not done.stderr
        return done.returncode, done.stdout.strip()

    return find


COUNTED = "{} USB disks with the serial number " + SERIAL


@pytest.mark.parametrize(
    ("disks", "said"),
    [
        ([("sda", "", ""), ("sdb", "another", "5000"), ("sdc", SERIAL, "480")], "found sdc"),
        ([], COUNTED.format(0)),
        ([("sda", "", "")], COUNTED.format(0)),
        ([("sda", "another", "480")], COUNTED.format(0)),
        ([("sda", SERIAL, "480"), ("sdb", SERIAL, "480")], COUNTED.format(2)),
        ([("sda", SERIAL, "5000")], "the disk is connected at 5000 Mbit/s instead of 480"),
    ],
)
def test_the_disk_is_found_among_others_and_any_number_but_one_is_an_error(find, disks, said):
    status, told = find(*disks)
    assert status == (0 if "found" in said else 3)
    assert told.startswith(said)
