"""What a look reads from a board: scripted trees of sysfs, and recordings of virtual EVMs."""

import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest
import yaml

from evmperf.measure.state import look, rules
from evmperf.model.state import State
from selftests.support import programs
from selftests.support.boardfiles import fake_board

DATA = Path(__file__).resolve().parents[1] / "data"
BOARDS = yaml.safe_load(Path(__file__).with_name("boards.yaml").read_text())
BOARDS["emmc"]["files"]["sys/kernel/debug/mmc0/mmc0:0001/ext_csd"] = "00" * 196 + "57" + "00" * 315
CARD = BOARDS["emmc"]["device"]
SILENT = {"shell.own_ticks": 0, "shell.thread_ticks": 0, "shell.log_lines": 0}
"""What a board counts whose files do not say otherwise."""


def _below(folder, script):
    """A look that reads the files of a folder, and the kernel's log from its own input."""
    script = re.sub(r"/(proc|sys)/", rf"{folder}/\1/", script)
    return re.sub(rf"{folder}(/proc/self/(?:fd/0|stat;))", r"\1", script)


@pytest.fixture(params=["mawk", "busybox"])
def said(request, tmp_path):
    """A function that gives what a look for a driver says on a board with these files."""
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} here")
    tools = tmp_path / "bin"
    (tools / "real").mkdir(parents=True)
    (tools / "real/awk").symlink_to(shutil.which(request.param))
    # The first time it dies, as mawk of a process that ends while it is read.
    once = "[ -e $OUT/died ] || { : >$OUT/died; exit 2; }"
    (tools / "awk").write_text(f'#!/bin/sh\n{once}\nexec {tools}/real/awk "$@"\n')
    (tools / "awk").chmod(0o755)
    # A kernel that has said nothing.
    (tools / "dmesg").write_text("#!/bin/sh\n")
    (tools / "dmesg").chmod(0o755)
    shell = ["busybox", "sh"] if request.param == "busybox" else ["sh"]

    def run(board, looks=2, boot="sd"):
        options = {"boot": {"medium": boot}}
        if "options" in board:
            options[board["driver"]] = board["options"]
        for name, text in board.get("programs", {}).items():
            (tools / name).write_text(f"#!/bin/sh\n{text}")
            (tools / name).chmod(0o755)
        device = tmp_path / board.get("device", "sys/devices/none")
        for name, text in board["files"].items():
            path = (device if name.startswith("./") else tmp_path) / name
            folder = path if name.endswith("/") else path.parent
            folder.mkdir(parents=True, exist_ok=True)
            if folder is not path:
                recorded = board.get("recorded", {}).get(name)
                before = (DATA / recorded).read_text() if recorded else ""
                end = "" if str(text)[-1:] in ("\n", "\0", "") else "\n"
                path.write_text(f"{before}{text}{end}")
        link = tmp_path / board.get("link", "sys/class/none")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(device / board.get("target", "."))
        there = fake_board(tmp_path / "fake.yaml", "boot", board["driver"], **options)
        script = _below(tmp_path, look.script(there, board["driver"]))
        environment = {**os.environ, "OUT": str(tmp_path), "F": str(tmp_path), "LC_ALL": "C"}
        environment["PATH"] = f"{tools}:{environment['PATH']}"
        for _ in range(looks):  # the first finds the device, the second knows where it is
            done = programs.run(*shell, "-c", script, environment=environment, check=True)
            assert done.stderr == done.stdout == ""
        return look.parse((tmp_path / look.FILE).read_text().replace(str(tmp_path), ""))

    return run


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_says_what_matters_and_no_more(said, name):
    board = BOARDS[name]
    found = said(board)
    assert found.shown == board["shown"]
    assert found.counters == SILENT | board.get("counters", {})
    if name == "emmc":
        assert found.uptime_s == 83.2
        assert found.ticks == {("312", "odd) name (x)"): 741, ("314", "d"): 741, ("78", "ksmd"): 960}


def test_what_concerns_one_driver_is_not_read_for_others(tmp_path):
    other = look.script(fake_board(tmp_path / "other.yaml", "boot", "system"), "system")
    assert not any(word in other for word in ("cpuidle", "asound", "/proc/crypto ", "/drm/"))


def test_the_shell_that_looks_is_no_other_work(tmp_path):
    board = fake_board(tmp_path / "fake.yaml", "boot")
    busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
    text = (
        f"({busy}\n{look.script(board, 'system')}\nread -r own rest </proc/self/stat; echo $rest; echo $own)"
    )
    environment = {**os.environ, "OUT": str(tmp_path), "F": str(tmp_path)}
    done = programs.run("sh", "-c", f"{text}; true", environment=environment, check=True)
    fields, own = done.stdout.split("\n")[:2]
    assert int(fields.split()[12]) + int(fields.split()[13]) > 20  # it was busy
    found = look.parse((tmp_path / look.FILE).read_text())
    assert found.ticks
    assert own not in {number for number, _ in found.ticks}


def _log(tmp_path, *lines):
    """Have the kernel's log hold these lines."""
    text = "\n".join(f"<6>{line}" for line in lines)
    (tmp_path / "bin/dmesg").write_text(f"#!/bin/sh\ncat <<E\n{text}\nE\n")


def test_the_kernels_lines_of_a_driver_are_said_once(said, tmp_path):
    _log(
        tmp_path,
        "[    1.9] mmc0: new HS200 MMC card",
        "[    2.5] usb 1-1: new device",
        "[    3.1] mmc0: error -110",
        "[    3.2] mmc1: error -110 whilst initialising SD card",
    )
    assert said(BOARDS["emmc"]).log == ()  # the second time nothing is new
    (tmp_path / "logged_emmc").write_text("2.0 7\n")
    # Of the host of the case's disk, and new since.
    found = said(BOARDS["emmc"], looks=1)
    assert found.log == ("[    3.1] mmc0: error -110",)
    assert found.counters["shell.log_lines"] == 7 + 3
    assert found.read_s == found.uptime_s == 83.2, "read before the log"
    # A flood of 100 lines a second: the log holds its last two seconds of ten.
    _log(tmp_path, *(f"[   {10 + n / 100:.2f}] sd 1:0:0:0: [sdb] tag#0 Send" for n in range(200)))
    (tmp_path / "logged_emmc").write_text("2.0 7\n")
    assert said(BOARDS["emmc"], looks=1).counters["shell.log_lines"] == 7 + 1004


@pytest.mark.parametrize("file", sorted((DATA / "state").glob("*.txt")), ids=lambda file: file.stem)
def test_recorded_boards(file):
    found = look.parse(file.read_text())
    wanted = json.loads(file.with_suffix(".json").read_text())
    assert msgspec.to_builtins(found.shown) == wanted["shown"]
    assert set(found.counters) == set(wanted["counters"])
    assert found.uptime_s == wanted["uptime_s"]


@pytest.mark.parametrize("file", sorted((DATA / "state").glob("*.after")), ids=lambda file: file.stem)
def test_a_second_look_a_second_later_finds_a_healthy_board(file):
    before, after = (look.parse(f.read_text()) for f in (file.with_suffix(".txt"), file))
    state = look.between(before, after)
    assert (state.seconds or 0) > 0
    assert not any(name.startswith(("queue.", "card.", "mmc.", "crypto.")) for name in state.changed)
    assert rules.judge(state, ["dd"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 5000,
        "/proc/uptime inf nan",
        "/proc/uptime 1e9 1",
        "/proc/stat intr\n/proc/stat cpu  1 2",
        "/proc/1/stat 99999999999999999999 x\n/proc/1/stat\n/proc/1/stat -",
        "/proc/sys/net/ipv4/uptime x",
        "ethtool -k eth0 : on\nethtool -S eth0 " + "x" * 500 + ": 1",
        "/sys/devices/../../etc/passwd root",
        "\n".join(f"/sys/devices/x/queue/q{n} {'z' * 400}" for n in range(9000)),
    ],
)
def test_a_hostile_look_has_no_more_than_text_of_limited_size(text):
    found = look.parse(text)
    assert len(found.shown) <= 2000
    assert all(len(str(value)) <= 400 for value in found.shown.values())
    assert all(len(name) < 500 for name in (*found.shown, *found.counters))
    assert found.uptime_s is None


def test_between_two_looks_is_what_changed_and_how_much_was_counted():
    before = look.BoardLook({"a": 1, "b": "x", "gone": 1}, {"n": 5, "m": 1}, {("7", "p"): 50}, 10.0)
    after = look.BoardLook(
        {"a": 1, "b": "y", "new": 2}, {"n": 9, "m": 1, "k": 3}, {("7", "p"): 150, ("8", "q"): 30}, 14.5
    )
    state = look.between(before, after, (0.99, 1.0))
    assert state == State(
        shown={"a": 1, "b": "x", "gone": 1},
        changed={"b": "y", "gone": None, "new": 2},
        counted={"n": 4, "k": 3},
        beside={"p (7)": 1.0, "q (8)": 0.3},
        seconds=4.5,
        clock=(0.99, 1.0),
    )
    assert (state.after("b"), state.after("a"), state.after("gone")) == ("y", 1, None)


def test_the_whole_life_of_a_child_that_ended_is_no_load_of_the_case():
    before = look.BoardLook({"cpu.online": "0-1"}, {}, {("7", "make"): 0, ("8", "sh"): 0}, 10.0)
    after = look.BoardLook({"cpu.online": "0-1"}, {}, {("7", "make"): 3805, ("8", "sh"): 400}, 15.0)
    assert look.between(before, after).beside == {"sh (8)": 4.0}  # two CPUs have 10 s in five


def test_the_registers_of_an_emmc_are_not_said_of_a_card(said):
    card = CARD.replace("mmc0", "mmc1").replace("fa10000", "fa00000")
    more = {f"{card}/type": "SD", f"{card}/block/mmcblk1/queue/scheduler": "[none]"}
    more["sys/kernel/debug/mmc1/ios"] = "clock:\t\t50000000 Hz"
    board = BOARDS["emmc"] | {"files": BOARDS["emmc"]["files"] | more}
    assert "mmc.ext_csd" in said(board, boot="nvme").shown
    board |= {"driver": "mmcsd", "link": "sys/class/block/mmcblk1", "options": {"scratch": "/dev/mmcblk1"}}
    board["target"] = os.path.relpath(f"{card}/block/mmcblk1", CARD)
    assert "mmc.ext_csd" not in said(board, boot="nvme").shown
