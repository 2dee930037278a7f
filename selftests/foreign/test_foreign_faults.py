"""What may be wrong with a board that nobody here made, each named by its cause."""

import contextlib
import subprocess
import threading

import pytest
import yaml
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.boards.console import powering
from evmperf.boards.console.powering import Person
from evmperf.lab.bench import LabgridBench
from evmperf.lab.desk import boardfile
from evmperf.lab.desk.identity import BoardIdentity
from evmperf.lab.desk.ports import Port, Voice
from evmperf.model.errors import BoardError

pytestmark = [pytest.mark.virtual_evm, pytest.mark.foreign_board]

TIMES = {"uboot_timeout": 60, "kernel_timeout": 30, "boot_timeout": 120, "silence_timeout": 20, "retries": 0}


class Owner(Person):
    """A person who does as they are asked, and presses Enter."""

    def __init__(self, board):
        super().__init__()
        self.board = board

    @contextlib.contextmanager
    def asked(self, question):
        self.board.switch("ON" in question)
        yield

    def answered(self, within_s):
        threading.Event().wait(within_s)
        return True


@pytest.fixture
def boot(tmp_path, monkeypatch):
    """A function that boots a board by hand once and returns the boot."""
    monkeypatch.setattr(powering, "_SILENT_S", 1.0)
    opened = []

    def boot_it(board, goal="booted", **times):
        voice = Voice(Port(board.path), "login", "", 115200)
        who = BoardIdentity(
            model="Xunlong Orange Pi PC", compatible=("xunlong,orangepi-pc",), root="mmcblk0p1 SD"
        )
        file = boardfile.write(tmp_path, who, voice, {}, power="hand")
        data = yaml.safe_load(file.read_text())
        data["targets"]["main"]["drivers"]["BootStrategy"].update({**TIMES, **times})
        data["targets"]["main"]["drivers"]["EvmShellDriver"].update(login_timeout=20, prompt="~ # ")
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        opened.append(Environment(str(file)))
        bench = LabgridBench(opened[-1].get_target("main"), boards.load(file), person=Owner(board))
        if goal == "shell":
            return bench.shell()
        return bench._boot("")

    yield boot_it
    for environment in opened:
        environment.cleanup()


def extlinux(board, old, new):
    """Change a word of the card's extlinux.conf."""
    source = board.card.with_name("extlinux.conf")
    board.debugfs(f"dump /boot/extlinux/extlinux.conf {source}")
    text = source.read_text()
    assert old in text
    board.write("/boot/extlinux/extlinux.conf", text.replace(old, new), "0100644")


def no_kernel(board):
    board.debugfs("rm /boot/extlinux/extlinux.conf")


def corrupt_kernel(board):
    source = board.card.with_name("vmlinuz")
    board.debugfs(f"dump /boot/vmlinuz {source}")
    data = bytearray(source.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 65536] = b"\xa5" * 65536
    source.write_bytes(data)
    board.debugfs("rm /boot/vmlinuz", f"write {source} /boot/vmlinuz")


def corrupt_spl(board):
    with board.card.open("r+b") as file:
        file.seek(8 << 10)
        file.write(bytes(32 << 10))


FAULTS = {
    "no medium": (corrupt_spl, "bootable"),
    "no kernel": (no_kernel, "nothing bootable"),
    "kernel": (corrupt_kernel, "the kernel prints nothing", 25),
    "root": (lambda b: extlinux(b, "mmcblk0p1", "mmcblk0p3"), "root file system"),
    "panic": (lambda b: extlinux(b, "  initrd /boot/initrd.img\n", ""), "kernel panic"),
    "hang": (lambda b: b.hang_at(b"Starting kernel"), "the kernel prints nothing", 25),
    "slow": (lambda b: b.write("/etc/slow", "#!/bin/sh\nsleep 1000\n"), "gives no login"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(make_foreign, boot, fault):
    board = make_foreign()
    break_it, name, *seconds = FAULTS[fault]
    break_it(board)
    outcome = boot(board, **({"boot_timeout": seconds[0]} if seconds else {}))
    assert outcome.error, fault
    assert name in str(outcome.error)


def test_a_board_without_a_card_is_not_blamed_on_the_cable_alone(make_foreign, boot):
    outcome = boot(make_foreign(card=False))
    assert "medium" in str(outcome.error)


def test_a_password_is_asked_for_by_name(make_foreign, boot):
    board = make_foreign()
    command = ["openssl", "passwd", "-1", "secret"]
    word = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    board.write("/etc/passwd", f"root:{word}:0:0:root:/root:/bin/sh\n", "0100644")
    with pytest.raises(BoardError, match="password"):
        boot(board, "shell")


def test_kernel_arguments_arrive_through_extlinux(make_foreign, boot):
    assert boot(make_foreign(), "shell").run("uname -m", 20).text.strip() == "armv7l"
