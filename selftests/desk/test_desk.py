"""`evmperf desk`: the board is found on a pseudo terminal, named, and measured."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tty
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks.tools.systemd_analyze import LAST_BOOT
from evmperf.boards import board as boards
from evmperf.commands.app import desk
from evmperf.commands.cli.main import main
from evmperf.lab import boardcheck
from evmperf.lab.desk import boardfile, host, identity, ports
from evmperf.measure.hostload import slowness
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import programs
from selftests.support.deskboard import here, this_machine


def test_a_known_board_gets_its_own_file_with_this_way_to_it(make_board, find):
    board = make_board("ti,am642-evm", "ti,am642", model="TI AM642 EVM")
    found = find(ports=(os.path.relpath(board.path),))
    assert Path(found.where).resolve() == Path(board.path)
    assert (found.model, found.like) == ("TI AM642 EVM", "am64x.yaml")
    assert any("login at 115200" in line for line in find.said)
    file = boards.Path(found.file)
    made, like = boards.load(file), boards.load(boards.find("am64x"))
    assert not boardcheck.check(boards.load(file)).mistakes
    assert made.name == like.name  # so that published figures stand beside its own
    assert made.power == "none"
    port = made.resources["RawSerialPort"]
    assert Path(port["port"]).is_absolute()
    assert port == {"port": found.where, "speed": 115200}
    # nothing that could be overwritten is named
    assert not made.options.emmc.scratch
    assert not {"emmc", "mmcsd", "ospi", "cpsw"} & made.features
    assert {"openssl_throughput"} <= set(found.can)
    assert "--power" in dict(found.steps)["Boot time of several boots"]
    assert "not on the board" in made.options.absent["lmbench"]
    assert board.switched == [True]


def test_a_foreign_board_gets_a_file_of_its_own(make_board, find):
    board = make_board("xunlong,orangepi-pc", model="Xunlong: Orange Pi '../PC'\x1b[2J")
    board.prompt = "~ # "
    found = find(ports=(board.path,), power="reset")
    file = boards.Path(found.file)
    assert found.like == ""
    assert file.name == "desk-xunlong-orange-pi-pc.yaml"
    assert not boardcheck.check(boards.load(file)).mistakes
    made = boards.load(file)
    assert "boot" in made.features
    assert made.power == "reset"
    assert made.drivers["EvmShellDriver"]["prompt"]
    assert found.changes == ("the board is reset or rebooted",)
    # A boot whose duration neither systemd nor the kernel tells is left out, not failed.
    assert ("last_boot" in found.can) == bool(here(LAST_BOOT))
    assert "\x1b" not in made.options.board.title
    said = f"{found} {find.said} {file.read_text()}"
    assert not re.search(r"EVM|[Kk]3|TI\b", re.sub(r"Evm(?:Shell|UBoot)Driver|evmperf", "", said))


def test_a_person_gives_the_password_and_measures_on_a_busy_board(make_board, tmp_path):
    board = make_board("ti,am642-evm")
    board.password = "secret"
    (tmp_path / "loadavg").write_text("9.00 8.00 7.00 2/99 1234\n")
    assert main(["desk", "--port", board.path, "--results", str(tmp_path)]) == ExitStatus.USAGE
    replies = [("Password of root: ", "secret"), ("Measure now", "y")]
    words = ["desk", "--port", board.path, "--results", tmp_path / "results", "-k", "no_benchmark"]
    status, shown = programs.at_terminal(*words, replies=replies)
    assert status == ExitStatus.NOTHING, shown
    assert "the board asks for a password." in shown
    assert re.search(r"State: load 9 of \d+ CPUs \(spoils figures\), ", shown), repr(shown)
    assert "\ufffd" not in shown
    assert "secret" not in shown
    status, shown = programs.at_terminal("desk", "--lg-env", "virtual", replies=[("Measure now", "n")])
    assert (status, "Nothing was measured" in shown) == (ExitStatus.OK, True)


def test_missing_programs_are_named_with_the_line_that_installs_them(make_board, find, tmp_path, monkeypatch):
    board, folder = make_board("ti,am642-evm"), tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(*names):
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)

    put("filesystem_tests")
    without = find(ports=(board.path,))
    assert re.search("apt-get install --no-install-recommends .*rt-tests", without.steps[-1][1])
    assert re.search(r"\d+ tables measured as TI does.* filesystem_tests", str(without.state))
    put("cyclictest", "stress-ng", "iperf3", "mpstat", "openssl", "taskset")
    found = find(ports=(board.path,))
    assert "cyclictest" not in str(boards.load(boards.Path(found.file)).options.absent)
    assert not any("apt-get" in step for _, step in found.steps)


def test_an_error_does_not_repeat_a_password_that_the_board_does(make_board, find, monkeypatch):
    monkeypatch.setattr(identity, "_LOGIN_S", 2.0)
    board = make_board("ti,am642-evm")
    board.password, board.echoes = "Tr0ub4dor", True
    board._log_in = lambda: board.say("\r\nno prompt that anybody knows")
    with pytest.raises(UsageError, match=r"no answer .*\*{9}") as error:
        find(ports=(board.path,), password=board.password)
    assert board.password not in str(error.value)


@pytest.mark.parametrize(
    ("talks", "texts"),
    {
        "login": ["\r\nam64xx-evm login: "],
        "Linux": ["\r\nroot@am64xx-evm:~# ", "\r\n~ # ", "\x1b[?2004hroot@board:/tmp# "],
        "rescue": ["\r\n(initramfs) ", "\r\nswitch_root:/# "],
        "U-Boot": ["\r\n=> ", "\r\n#> "],
        "password": ["\r\nPassword: "],
        "": ["\r\nStarting kernel ...\r\n", "Last login: Mon", "\x8f\xff\x00##"],
    }.items(),
)
def test_what_talks_is_told_by_how_it_ends(talks, texts):
    assert {ports.heard(said) for said in texts} == {talks}


@contextlib.contextmanager
def saying(text):
    """A port on which something answers whatever is typed with a text."""
    leader, follower = pty.openpty()
    tty.setraw(follower)

    def answer():
        with contextlib.suppress(OSError):
            while os.read(leader, 4096):
                os.write(leader, text.encode())

    threading.Thread(target=answer, daemon=True).start()
    yield os.ttyname(follower)
    os.close(follower)
    os.close(leader)


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        (["\r\n(initramfs) "], UsageError, "a rescue shell answers, .*root="),
        (["\r\nStarting kernel ...\r\n" * 5], UsageError, "gives no login: wait"),
        (["\r\nboard login: ", "\r\n=> "], UsageError, "both have a board: .* --port"),
        (["\x8f\xff\x00\xfe" * 4], LabError, "unreadable at each of 115200, .*voltage"),
        (["\r\nU-Boot SPL\r\n"], UsageError, "gives no login: wait"),
        ([], LabError, "ttyUSB7 cannot be opened"),
        ([""], desk.NoBoard, r"no board answers.*getty"),
    ],
)
def test_what_is_no_single_board_is_told_with_what_to_do(find, said, error, told):
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(saying(text)) for text in said]
        with pytest.raises(error, match=told):
            find(ports=(*there, "/dev/no/ttyUSB7"))
    assert any("/dev/no/ttyUSB7 cannot be opened" in line for line in find.said)


def test_what_a_hostile_board_says_has_a_size_and_is_no_word():
    said = f"model: {'x' * 10_000}\ntool: ../sh\ntool: openssl\nuser: 0\nmodel: second\n"
    found = identity.answer(said)
    assert len(found.model) < 200
    assert found.tools == {"openssl"}


def test_a_foreign_boards_cable_gets_addresses_where_it_has_none(tmp_path):
    found = identity.answer("model: Some Board\nlink: eth0\nlink: $(reboot) 10.0.0.1/8\n")
    assert found.links == {"eth0": []}
    cable = boardfile.cable(found.links, far=False)
    assert cable["eth"]["interface"] == "eth0"
    assert boardfile.cable(found.links, far=True) == {}  # its own network is in use
    assert boardfile.cable({"eth0": [], "eth1": []}, far=False) == {}  # which of them?
    voice = ports.Voice("/dev/ttyX")
    file = boardfile.write(tmp_path, found, voice, {}, power="none", tester="local", sections=cable)
    made = boards.load(file)
    assert "eth" in made.features
    assert made.options.eth.tester_address == cable["eth"]["tester_address"]
    assert not boardcheck.check(boards.load(file)).mistakes


SENDERS = {"all of the terminal": [os.killpg], "the command, then all": [os.kill, os.killpg]}


@pytest.mark.parametrize("to", SENDERS)
def test_ctrl_c_ends_the_desk_with_table_and_report(make_board, tmp_path, to):
    board = make_board("xunlong,orangepi-pc")
    words = ["--port", board.path, "--results", str(tmp_path), "--yes", "-k", "openssl_throughput"]
    command = [sys.executable, "-m", "evmperf", "desk", *words]
    with this_machine():
        desk = subprocess.Popen(
            command,
            cwd=boards.ENV_DIR.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        deadline = time.monotonic() + 120 * slowness()
        while desk.poll() is None and not _measured(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.2)
        for send in SENDERS[to]:
            send(desk.pid, signal.SIGINT)
        said = desk.communicate(timeout=120 * slowness())[0]
        assert not Path(board.disk, "step").exists(), said
    assert desk.returncode == ExitStatus.INTERRUPTED, said
    assert _measured(tmp_path) > 0
    (run,) = (json.loads(file.read_text()) for file in tmp_path.glob("*/run.json"))
    assert run["ending"] == "cut", said
    assert run["outcome"] in said
    assert "openssl" in said.split("Can be measured")[1]
    assert list(tmp_path.glob("*/report.html"))
    assert not re.search("KeyboardInterrupt|={9}", said)


def _measured(results):
    """How many cases of a benchmark have figures."""
    lines = [line for file in results.glob("*/results.jsonl") for line in file.read_text().splitlines()]
    return sum('"openssl_throughput"' in line and '"measured"' in line for line in lines)


@pytest.mark.parametrize("name", ["virtual", "am64x"])  # it has a flash without a scratch partition
def test_a_file_that_is_there_says_what_it_would_change(name, monkeypatch, capsys):
    monkeypatch.setattr(host, "_RAISE", "raise SystemExit(1)")
    assert main(["desk", "--lg-env", name]) == 0
    said = capsys.readouterr().out
    assert "power-cycled" in said
    assert "is overwritten" in said
    assert "no right to real-time priority" in said
    assert "Nothing was measured" in said


def test_what_was_found_becomes_a_file_of_ones_own(make_board, find, tmp_path, capsys):
    board = make_board("xunlong,orangepi-pc")
    board.password = "secret"
    found = boards.Path(find(ports=(board.path,), password="secret", power="hand").file)
    words = ["board", "new", "mine", "--from", str(found), "--into", str(tmp_path), "--title", "My: board"]
    assert main(words) == 0
    mine = tmp_path / "mine.yaml"
    assert not boardcheck.check(boards.load(mine)).mistakes
    made, before = boards.load(mine), boards.load(found)
    assert made.options.board.title == "My: board"
    assert (made.name, made.features, made.drivers) == (before.name, before.features, before.drivers)
    comments = [line for line in mine.read_text().splitlines() if line.strip().startswith("# ")]
    for word in ("scratch", "power driver", "log in"):
        assert any(word in line for line in comments), word
    assert mine.stat().st_mode & 0o077 == 0
    assert main(words) == ExitStatus.USAGE  # it is not overwritten
    assert "already exists" in capsys.readouterr().err


def test_a_desk_without_a_board_is_one_sentence_within_five_seconds(monkeypatch, capsys):
    monkeypatch.setattr(ports, "usb_ports", list)
    assert main(["desk"]) == ExitStatus.NOTHING
    said = capsys.readouterr()
    (sentence,) = said.err.splitlines()
    assert "no board found" in sentence
    assert said.out == ""
    # With ports on which nothing talks it listens for so long:
    assert ports._LISTEN_S + ports._FURTHER_S * (len(ports.RATES) - 1) < 5


def test_a_card_in_a_lesser_mode_than_ti_expects_is_told_and_the_cable_measured(
    make_board, find, tmp_path, monkeypatch
):
    board = make_board("ti,am642-evm")
    for name, text in {
        "mmc_host/mmc0/mmc0:0001/type": "MMC",
        "debug/mmc0/ios": "timing spec:\t1 (mmc high-speed)",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(desk, "_PATH", "/none")
    found = find(ports=(board.path,), tester="local:eth7")
    (told,) = (words for words, spoils in found.state if words.startswith("emmc: ") and spoils)
    assert re.search("TI's own check .* expects HS200 .*; it runs at", told)
    file = boards.Path(found.file)
    made = boards.load(file)
    network = dict(found.steps)["Network"]
    assert re.search(r"\bip, iperf3, .*\bnetserver\b.* on this machine", network)
    assert bool(re.search(r"\bnetperf\b.* on the board", network)) == (shutil.which("netperf") is None)
    assert made.tester == "local:eth7"
    assert {"cpsw"} <= made.features
    assert made.options.cpsw.tester_address
    assert not boardcheck.check(boards.load(file)).mistakes


ANY = {"name": "any", "title": "Any", "description": "any"}


def test_the_pages_board_with_a_reset_line_is_a_board_file(tmp_path):
    page = (boards.ENV_DIR.parent / "docs" / "day-one.md").read_text()
    text = re.search(r"\n    resources:\n(?:    .*\n)*?      BootStrategy: \{\}\n", page)[0]
    main = yaml.safe_load(textwrap.dedent(text))
    main |= {
        "features": ["boot"],
        "options": {"board": {**ANY, "profile": "quick"}, "boot": {"medium": "sd"}},
    }
    modules = ["evmperf.lab.console", "evmperf.lab.shell", "evmperf.lab.strategy"]
    file = tmp_path / "line.yaml"
    file.write_text(yaml.safe_dump({"imports": modules, "targets": {"main": main}}, sort_keys=False))
    assert not boardcheck.check(boards.load(file)).mistakes
    assert boards.load(file).power == "reset"
