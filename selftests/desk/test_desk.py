"""`evmperf desk`: the board is found on a pseudo terminal, named, and measured."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.commands.app import desk
from evmperf.commands.cli.main import main
from evmperf.lab import boardcheck
from evmperf.lab.desk import boardfile, identity, ports
from evmperf.lab.desk.identity import PasswordWanted
from evmperf.measure.hostload import slowness
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from selftests.support.deskboard import evmperf, this_machine


def test_a_known_board_gets_its_own_file_with_this_way_to_it(make_board, find):
    board = make_board("ti,am642-evm", "ti,am642", model="TI AM642 EVM")
    found = find(ports=(os.path.relpath(board.path),))
    assert Path(found.where).resolve() == Path(board.path)
    assert (found.model, found.like) == ("TI AM642 EVM", "am64x.yaml")
    assert any("login at 115200" in line for line in find.said)
    file = boards.Path(found.file)
    made, like = boards.load(file), boards.load(boards.find("am64x"))
    assert boardcheck.check(file) == []
    assert made.name == like.name  # so that published figures stand beside its own
    assert made.power == "none"
    port = made.resources["RawSerialPort"]
    assert Path(port["port"]).is_absolute()
    assert port == {"port": found.where, "speed": 115200}
    # nothing that could be overwritten is named
    assert not made.options.emmc.scratch
    assert not {"emmc", "mmcsd", "ospi", "cpsw"} & made.features
    assert {"openssl_throughput"} <= set(found.can)
    reasons = {name: why for names, why in found.left_out for name in names}
    assert "scratch" in reasons["emmc"]
    assert "--power" in reasons["boot"]
    assert "not on the board" in reasons["lmbench"]
    assert board.switched == [True]


def test_a_foreign_board_gets_a_file_of_its_own(make_board, find):
    board = make_board("xunlong,orangepi-pc", model="Xunlong: Orange Pi '../PC'\x1b[2J")
    board.prompt = "~ # "
    found = find(ports=(board.path,), power="reset")
    file = boards.Path(found.file)
    assert found.like == ""
    assert file.name == "desk-xunlong-orange-pi-pc.yaml"
    assert boardcheck.check(file) == []
    made = boards.load(file)
    assert "boot" in made.features
    assert made.power == "reset"
    assert made.drivers["EvmShellDriver"]["prompt"]
    assert found.changes == ("the board is reset or rebooted",)
    assert "\x1b" not in made.options.board.title
    said = f"{found} {find.said} {file.read_text()}"
    assert not re.search(r"EVM|[Kk]3|TI\b", re.sub(r"Evm(?:Shell|UBoot)Driver|evmperf", "", said))


def test_a_board_at_uboots_prompt_is_booted_when_asked_to(make_board, find):
    board = make_board("ti,j7200-evm", up=False)
    board._take("x")  # stops its countdown
    with pytest.raises(UsageError, match="--boot"):
        find(ports=(board.path,))
    assert find(ports=(board.path,), boot=True).like == "j7200.yaml"
    assert board.switched == [True]


def test_a_password_is_asked_for_and_kept_to_the_owner(make_board, find):
    board = make_board("ti,am642-evm")
    board.password = "secret"
    with pytest.raises(PasswordWanted):
        find(ports=(board.path,))
    with pytest.raises(UsageError, match="check the password"):
        find(ports=(board.path,), password="another")
    found = find(ports=(board.path,), password="secret")
    file = boards.Path(found.file)
    assert boards.load(file).drivers["EvmShellDriver"]["password"] == "secret"
    assert file.stat().st_mode & 0o077 == 0


def test_an_error_does_not_repeat_a_password_that_the_board_does(make_board, find, monkeypatch):
    monkeypatch.setattr(identity, "_LOGIN_S", 2.0)
    board = make_board("ti,am642-evm")
    board.password, board.echoes = "Tr0ub4dor", True
    board._log_in = lambda: board.say("\r\nno prompt that anybody knows")
    with pytest.raises(UsageError, match=r"no answer .*\*{9}") as error:
        find(ports=(board.path,), password=board.password)
    assert board.password not in str(error.value)


def test_ports_that_are_silent_or_gone_are_named(find, tmp_path):
    leader, follower = pty.openpty()
    gone = str(tmp_path / "ttyUSB7")
    with pytest.raises(desk.NoBoard, match=r"no board answers.*getty"):
        find(ports=(os.ttyname(follower), gone))
    os.close(leader)
    os.close(follower)
    assert any(gone in line for line in find.said)


@pytest.mark.parametrize(
    ("said", "talks"),
    [
        ("\r\nam64xx-evm login: ", "login"),
        ("\r\nroot@am64xx-evm:~# ", "Linux"),
        ("\r\n~ # ", "Linux"),
        ("\x1b[?2004hroot@board:/tmp# ", "Linux"),
        ("\r\n(initramfs) ", "rescue"),
        ("\r\nswitch_root:/# ", "rescue"),
        ("\r\n=> ", "U-Boot"),
        ("\r\n#> ", "U-Boot"),
        ("\r\nPassword: ", "password"),
        ("\r\nStarting kernel ...\r\n", ""),
        ("Last login: Mon", ""),
        ("\x8f\xff\x00##", ""),
    ],
)
def test_what_talks_is_told_by_how_it_ends(said, talks):
    assert ports.heard(said) == talks


def test_what_a_hostile_board_says_has_a_size_and_is_no_word():
    said = f"model: {'x' * 10_000}\ntool: ../sh\ntool: openssl\nuser: 0\nmodel: second\n"
    found = identity.answer(said)
    assert len(found.model) < 200
    assert found.tools == {"openssl"}


def test_a_foreign_boards_cable_gets_addresses_where_it_has_none(tmp_path):
    found = identity.answer("model: Some Board\nlink: eth0\nlink: $(reboot) 10.0.0.1/8\n")
    assert found.links == {"eth0": []}
    words = boardfile.cable(found.links, far=False)
    assert words["interface"] == "eth0"
    assert boardfile.cable(found.links, far=True) == {}  # its own network is in use
    assert boardfile.cable({"eth0": [], "eth1": []}, far=False) == {}  # which of them?
    voice = ports.Voice(ports.Port("/dev/ttyX"), "login", "", 115200)
    file = boardfile.write(tmp_path, found, voice, {}, power="none", tester="local", sections={"eth": words})
    made = boards.load(file)
    assert "eth" in made.features
    assert made.options.eth.tester_address == words["tester_address"]
    assert boardcheck.check(file) == []


SENDERS = {"all of the terminal": [os.killpg], "the command": [os.kill], "both": [os.kill, os.killpg]}


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
    assert desk.returncode == ExitStatus.INTERRUPTED, said
    assert _measured(tmp_path) > 0
    (run,) = (json.loads(file.read_text()) for file in tmp_path.glob("*/run.json"))
    assert run["ending"] == "cut", said
    assert run["outcome"] in said
    assert "openssl" in said.split("Can be measured")[1]
    assert list(tmp_path.glob("*/report.html"))


def _measured(results):
    """How many cases of a benchmark have figures."""
    lines = [line for file in results.glob("*/results.jsonl") for line in file.read_text().splitlines()]
    return sum('"openssl_throughput"' in line and '"measured"' in line for line in lines)


def test_a_file_that_is_there_says_what_it_would_change():
    done = evmperf("--lg-env", "virtual")
    assert done.returncode == 0, done.stderr
    assert "power-cycled" in done.stdout
    assert "is overwritten" in done.stdout
    assert "Nothing was measured" in done.stdout


def test_an_address_is_no_option_of_ssh(find):
    with pytest.raises(UsageError, match="is not an address"):
        find(address="-oProxyCommand=true")


def test_what_was_found_becomes_a_file_of_ones_own(make_board, find, tmp_path, capsys):
    board = make_board("xunlong,orangepi-pc")
    board.password = "secret"
    found = boards.Path(find(ports=(board.path,), password="secret", power="hand").file)
    words = ["board", "new", "mine", "--from", str(found), "--into", str(tmp_path), "--title", "My: board"]
    assert main(words) == 0
    mine = tmp_path / "mine.yaml"
    assert boardcheck.check(mine) == []
    made, before = boards.load(mine), boards.load(found)
    assert made.options.board.title == "My: board"
    assert (made.name, made.features, made.drivers) == (before.name, before.features, before.drivers)
    comments = [line for line in mine.read_text().splitlines() if line.strip().startswith("# ")]
    for word in ("scratch", "power driver", "log in"):
        assert any(word in line for line in comments), word
    assert mine.stat().st_mode & 0o077 == 0
    assert main(words) == ExitStatus.USAGE  # it is not overwritten
    assert "already exists" in capsys.readouterr().err


def test_no_file_of_a_desk_is_named_with_the_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["board", "new", "mine", "--from", "desk"]) == ExitStatus.USAGE
    assert "evmperf desk" in capsys.readouterr().err


def test_a_desk_without_a_board_is_one_sentence_within_five_seconds(monkeypatch, capsys):
    monkeypatch.setattr(ports, "usb_ports", list)
    assert main(["desk"]) == ExitStatus.NOTHING
    said = capsys.readouterr()
    (sentence,) = said.err.splitlines()
    assert "no board found" in sentence
    assert said.out == ""
    # With ports on which nothing talks it listens for so long:
    assert ports._LISTEN_S + ports._FURTHER_S * (len(ports.RATES) - 1) < 5


def test_with_this_machine_as_tester_the_cable_is_measured(make_board, find):
    board = make_board("ti,am642-evm")
    file = boards.Path(find(ports=(board.path,), tester="local:eth7").file)
    made = boards.load(file)
    assert made.tester == "local:eth7"
    assert {"cpsw"} <= made.features
    assert made.options.cpsw.tester_address
    assert boardcheck.check(file) == []


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
    assert boardcheck.check(file) == []
    assert boards.load(file).power == "reset"
