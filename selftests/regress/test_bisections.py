"""Bisections from end to end, on a scripted board.

A short one still takes some twenty boots: good and bad alone are measured four times each before
their difference is believed.
"""

import contextlib
import os

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.judge import shift
from evmperf.lab.provision import identity
from selftests.instruments import bisections, confirmation
from selftests.instruments.bisections import BOOT_TIME, Words
from selftests.provision import imagelab
from selftests.support.fakeboard import FakeBoard, FakeSwitch
from selftests.support.texts import BOOT

NIGHTS = shift.FEWEST + 3  # fewer have no range that one night could be beyond
SCRIPT = Words(("uboot:colour=red", "uboot:colour=blue"), "uboot:pace=slow", "uboot:dies=yes")


class Scripted(FakeBoard):
    """Boots in no time, or slowly, or not, as its U-Boot variables say."""

    def switch(self, on):
        self.typed.clear()
        super().switch(on)

    def _boot(self):
        said = " ".join(self.typed)
        self.pace_s = 0.2 if "setenv pace" in said else 0.03
        if "setenv dies" in said:
            self.going = "panic"
        super()._boot()


COMMANDS = {
    "uname": f"""case $1 in -r) echo '{imagelab.RELEASE}' ;; -v) echo '{imagelab.VERSION}' ;;
        *) exec /bin/uname "$@" ;; esac""",
    "cat": '[ ! -e "$CARD$1" ] || set -- "$CARD$1"; exec /bin/cat "$@"',
    "lsblk": "echo 0badcafe-02",
    "dd": "",
}
"""What a shell on a board with a card says otherwise than one on this machine."""


class WithCard(FakeBoard):
    """Boots what is on its card, as slowly as the init script there says."""

    load = 1.0
    """How many times slower it is for other reasons."""

    def __init__(self, folder):
        super().__init__()
        self.card, self._root, programs = folder / "card", folder / "root", folder / "bin"
        for part in (self._root / "etc", programs):
            part.mkdir(parents=True)
        for name, text in COMMANDS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "CARD": str(self._root)}

    def switch(self, on):
        if on:
            system = identity.file_system(self.card, identity.table_of(self.card).partitions[1])
            for name in ("etc/os-release", "etc/hostname"):
                (self._root / name).write_bytes(system.read(f"/{name}"))
            slow = b"sleep" in system.read("/etc/init.d/rcS")
            self.pace_s = (0.2 if slow else 0.03) * self.load
        super().switch(on)


def images(folder, bad, count):
    """Small images, whose init sleeps from one on."""
    spec = imagelab.Spec()
    banner = BOOT[BOOT.index(b"U-Boot 20") :].partition(b"\r")[0]
    spec.boot["u-boot.img"] = bytes(500) + banner + bytes(99)
    files = []
    for number in range(count):
        spec.root["usr/lib/os-release"] = f'PRETTY_NAME="Small"\nVERSION_ID="{number}"\n'.encode()
        spec.root["etc/init.d/rcS"] = b"sleep 1\n" if number >= bad else b"true\n"
        files.append(imagelab.build(folder / f"small-{number}.img", spec))
    return files


def board_file(board, switch, folder, **more):
    """The file of a scripted board, with more options."""
    data = yaml.safe_load((boards.ENV_DIR / "virtual.yaml").read_text())
    main = data["targets"]["main"]
    del main["options"]["board"]["virtual"], main["drivers"]["ScpiMeterDriver"]
    main["options"] = {"board": main["options"]["board"], "boot": {"medium": "virtio"}, **more}
    main["features"] = ["boot"]
    main["resources"] = {
        # It sends as fast as it can: at 115200 Bd each text would be stamped 50 ms off.
        "NetworkSerialPort": {"host": "127.0.0.1", "port": board.port, "protocol": "raw", "speed": 3_000_000},
        "NetworkPowerPort": {
            "model": "rest",
            "index": "0",
            "host": f"http://127.0.0.1:{switch.port}/power/{{index}}",
        },
    }
    main["drivers"]["K3BootStrategy"] = {"retries": 0, "roots": {}, "media": {"virtio": []}}
    file = folder / "scripted.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    return file


@pytest.fixture
def scripted(request, tmp_path):
    """Makes the file of a scripted board."""

    def make(board, **options):
        switch = FakeSwitch(board)
        request.addfinalizer(board.close)
        request.addfinalizer(switch.close)
        return board_file(board, switch, tmp_path, **options)

    return make


@pytest.mark.many_sessions
def test_git_bisect_run_on_a_scripted_board(scripted, tmp_path):
    outcome = bisections.commits_of(tmp_path, scripted(Scripted()), SCRIPT, 4, 1)
    assert outcome.found, outcome.table()
    assert {step.answer for step in outcome.state.steps} == {"cannot tell", "bad"}


@pytest.mark.many_sessions
def test_the_slower_one_of_three_images_is_named_on_a_scripted_board(scripted, tmp_path):
    board = WithCard(tmp_path / "board")
    files = images(tmp_path, 2, 3)
    command = f"dd if={{image}} of={board.card}"
    outcome = bisections.images_of(tmp_path, scripted(board, image={"command": command}), files, 2)
    assert outcome.found, outcome.table()
    assert [step.answer for step in outcome.state.steps] == ["good"]


@pytest.mark.many_sessions
@pytest.mark.parametrize("change", [True, False])
def test_an_alarm_is_confirmed_or_taken_back_on_a_scripted_board(scripted, tmp_path, change):
    """The images differ, or the board was slow in the night of the alarm alone."""
    board = WithCard(tmp_path / "board")
    file = scripted(board, image={"command": f"dd if={{image}} of={board.card}"})

    @contextlib.contextmanager
    def slow():
        board.load = 1.0 if change else 5.0
        yield
        board.load = 1.0

    pair = images(tmp_path, 1 if change else 2, 2)
    outcome = confirmation.alarm_of(tmp_path, file, pair, BOOT_TIME, nights=NIGHTS, odd=slow())
    assert outcome.confirmed if change else outcome.dismissed, outcome.note
