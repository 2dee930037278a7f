"""`evmperf desk`: the board is found on a pseudo terminal or over SSH, named, and measured."""

import contextlib
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import tty
from dataclasses import replace

import pytest
import yaml

from evmperf.app import desk
from evmperf.app.requests import FindBoard
from evmperf.boards import board as boards
from evmperf.cli.main import main
from evmperf.desk import boardfile, cable, identity, ports, scratch
from evmperf.desk.identity import PasswordWanted
from evmperf.lab import boardcheck
from evmperf.lab.tester import SshTester
from evmperf.model.errors import BoardError, ToolError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import sudoer
from selftests.support.fakeboard import FakeBoard
from selftests.support.sshd import Sshd


def here(command):
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False).stdout


class Disks:
    """An eMMC that is a file, with a table that sfdisk made; `tells` whether its kernel sees changes."""

    def __init__(self, folder, table, mib, grown_mib, tells=True):
        self._folder = folder
        self._tells = tells
        self._sys = folder / "sys/block/mmcblk0"
        (self._sys / "device").mkdir(parents=True)
        (folder / "dev").mkdir()
        self.image = folder / "dev/mmcblk0"
        self.image.touch()
        os.truncate(self.image, mib << 20)
        subprocess.run(["sfdisk", "-q", self.image], input=table, text=True, check=True)
        os.truncate(self.image, grown_mib << 20)
        for name, text in {"device/type": "MMC", "size": (grown_mib << 20) // 512, "ro": 0}.items():
            (self._sys / name).write_text(f"{text}\n")
        self._look()

    @property
    def table(self):
        """Number, first sector and count of each partition."""
        done = subprocess.run(["sfdisk", "-J", self.image], capture_output=True, check=True)
        found = json.loads(done.stdout)["partitiontable"]["partitions"]
        return {(int(p["node"].rpartition("p")[2]), p["start"], p["size"]) for p in found}

    def run(self, command):
        """What a command on the board prints."""
        for root in ("/sys/block", "/dev/mmcblk", "/dev/$n"):
            command = command.replace(root, f"{self._folder}{root}")
        # Of a file partx would make a loop device.
        said = here(command.replace("partx --add", "true"))
        if self._tells:
            self._look()
        return said.replace(str(self._folder), "")

    def _look(self):
        for number, start, size in self.table:
            folder = self._sys / f"mmcblk0p{number}"
            folder.mkdir(exist_ok=True)
            (folder / "start").write_text(f"{start}\n")
            (folder / "size").write_text(f"{size}\n")


class DeskBoard(FakeBoard):
    """A scripted board with a device tree, on a pseudo terminal."""

    def __init__(self, folder, *compatible, model="Some Board Rev A"):
        super().__init__()
        self.pace_s = 0.05
        self.prompt = "root@board:~# "
        self.disks = None
        self._tree = folder / "device-tree"
        self._tree.mkdir()
        (self._tree / "model").write_bytes(model.encode() + b"\0")
        (self._tree / "compatible").write_bytes(b"".join(c.encode() + b"\0" for c in compatible))
        leader, self._follower = pty.openpty()
        tty.setraw(self._follower)
        self.path = os.ttyname(self._follower)
        self._wire = socket.create_connection(("127.0.0.1", self.port))
        threading.Thread(target=self._carry, args=[leader], daemon=True).start()
        deadline = time.monotonic() + 10
        while not self._client and time.monotonic() < deadline:
            time.sleep(0.01)

    def _carry(self, leader):
        with contextlib.suppress(OSError):
            while True:
                for end in select.select([leader, self._wire], [], [])[0]:
                    if end is leader:
                        self._wire.sendall(os.read(leader, 4096))
                    elif data := self._wire.recv(4096):
                        os.write(leader, data)
                    else:
                        return

    def _in_shell(self, line):
        command, mark, _ = line.rpartition("; echo evm'perf-end'")
        if not mark:
            super()._in_shell(line)
            return
        command = command.replace("/proc/device-tree", str(self._tree))
        said = self.disks.run(command) if self.disks else here(command)
        said = said.replace("\n", "\r\n")
        self.say(f"{said}evmperf-end\r\n{self.prompt}")

    def close(self):
        super().close()
        self._wire.close()
        os.close(self._follower)


@pytest.fixture
def make_board(tmp_path):
    made = []

    def make(*compatible, up=True, **more):
        made.append(DeskBoard(tmp_path, *compatible, **more))
        made[0].switch(True)
        if up:
            made[0]._come_up()
        return made[0]

    yield make
    for board in made:
        board.close()


@pytest.fixture
def find(tmp_path):
    """A function that finds a board, and what was said meanwhile."""
    said = []

    def find_it(**request):
        request = FindBoard(folder=str(tmp_path / "found"), **request)
        return desk.find(request, lambda reply: said.append(reply.sentence))

    find_it.said = said
    return find_it


def evmperf(*words, **more):
    return subprocess.run(
        [sys.executable, "-m", "evmperf", "desk", *words],
        cwd=boards.ENV_DIR.parent,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **more,
    )


def test_a_known_board_gets_its_own_file_with_this_way_to_it(make_board, find):
    board = make_board("ti,am642-evm", "ti,am642", model="TI AM642 EVM")
    found = find(ports=(board.path,))
    assert (found.where, found.model, found.like) == (board.path, "TI AM642 EVM", "am64x.yaml")
    assert any("login at 115200" in line for line in find.said)
    file = boards.Path(found.file)
    made, like = boards.load(file), boards.load(boards.find("am64x"))
    assert boardcheck.check(file) == []
    assert made.name == like.name  # so that published figures stand beside its own
    assert made.power == "none"
    assert made.resources["RawSerialPort"] == {"port": board.path, "speed": 115200}
    # nothing that could be overwritten is named
    assert not made.options.emmc.scratch
    assert not {"emmc", "mmcsd", "ospi", "cpsw"} & made.features
    assert {"openssl_throughput"} <= set(found.can)
    reasons = {name: left.why for left in found.left_out for name in left.names}
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
    found = find(ports=(board.path,), password="secret")
    file = boards.Path(found.file)
    assert boards.load(file).drivers["EvmShellDriver"]["password"] == "secret"
    assert file.stat().st_mode & 0o077 == 0


def test_ports_that_are_silent_or_gone_are_named(find, tmp_path):
    leader, follower = pty.openpty()
    gone = str(tmp_path / "ttyUSB7")
    with pytest.raises(desk.NoBoard, match="no board answers"):
        find(ports=(os.ttyname(follower), gone))
    os.close(leader)
    os.close(follower)
    assert any(gone in line for line in find.said)


def test_a_host_without_a_board_says_so_in_a_sentence(monkeypatch, find):
    monkeypatch.setattr(ports, "usb_ports", list)
    with pytest.raises(desk.NoBoard, match="no board found"):
        find()


@pytest.mark.parametrize(
    ("said", "talks"),
    [
        ("\r\nam64xx-evm login: ", "login"),
        ("\r\nroot@am64xx-evm:~# ", "Linux"),
        ("\r\n~ # ", "Linux"),
        ("\x1b[?2004hroot@board:/tmp# ", "Linux"),
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
    words = cable.between(found.links, far=False)
    assert words["interface"] == "eth0"
    assert cable.between(found.links, far=True) == {}  # its own network is in use
    assert cable.between({"eth0": [], "eth1": []}, far=False) == {}  # which of them?
    voice = ports.Voice(ports.Port("/dev/ttyX"), "login", "", 115200)
    file = boardfile.write(tmp_path, found, voice, {}, power="none", tester="local", sections={"eth": words})
    made = boards.load(file)
    assert "eth" in made.features
    assert made.options.eth.tester_address == words["tester_address"]
    assert boardcheck.check(file) == []


def test_the_desk_measures_over_serial_alone_and_leaves_the_board_on(make_board, tmp_path):
    board = make_board("xunlong,orangepi-pc")
    results = tmp_path / "results"
    words = ["--port", board.path, "--results", str(results)]
    asked = evmperf(*words)
    assert asked.returncode == 0, asked.stderr
    assert "Nothing was measured" in asked.stdout  # nobody said yes
    assert list(results.glob("*/run.json")) == []
    done = evmperf(*words, "--yes", "-k", "aes-128-cbc and 16384")
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = results.glob("*/run.json")
    facts = json.loads(run.read_text())["facts"]
    assert facts["power"] == "none"
    assert float(facts["found"]["uptime_s"]) > 0
    assert board.is_on


@contextlib.contextmanager
def ssh_board(prefix=()):
    """A real sshd, whose users may read the key, and what names it to the desk."""
    with tempfile.TemporaryDirectory(prefix="evmperf-sshd-") as name:
        folder = boards.Path(name)
        folder.chmod(0o755)
        sshd = Sshd(folder, prefix=prefix)
        try:
            yield sshd, ["--key", str(folder / "user")]
        finally:
            sshd.stop()


QUICK = ("--yes", "-k", "aes-128 and 16384")


def test_the_desk_measures_over_ssh_alone(tmp_path):
    with ssh_board() as (sshd, key):
        address = f"root@127.0.0.1:{sshd.port}"
        done = evmperf(address, *key, "--results", str(tmp_path / "r"), *QUICK)
        assert done.returncode == 0, done.stdout + done.stderr
        (file,) = (tmp_path / "r" / "desk").glob("*.yaml")
        main = yaml.safe_load(file.read_text())["targets"]["main"]
        assert set(main["drivers"]) == {"SSHDriver", "BootStrategy"}
    refused = evmperf(address, *key)
    assert refused.returncode == ExitStatus.LAB_BROKEN
    assert "cannot be reached" in refused.stderr


def test_another_user_than_root_measures_through_sudo_over_ssh(tmp_path):
    prefix = sudoer.prefix(tmp_path, "ALL=(ALL) NOPASSWD: ALL")
    with ssh_board(prefix) as (sshd, key):
        address = f"{sudoer.NAME}@127.0.0.1:{sshd.port}"
        done = evmperf(address, *key, "--results", str(tmp_path / "r"), *QUICK)
        assert done.returncode == 0, done.stdout + done.stderr
        shell = SshTester(f"{sudoer.NAME}@127.0.0.1", sshd.options)
        try:
            assert shell.run("id -u", 20).text == "0\n"
            with pytest.raises(ToolError, match="killed"):
                shell.run(f"echo $$ >{tmp_path}/pid; sleep 60; true", 1)
            hung = boards.Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cmdline")
            deadline = time.monotonic() + 10
            while hung.exists() and hung.read_text():  # a zombie has none
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            shell.close()


@pytest.mark.parametrize("rule", ["", "ALL=(ALL) ALL"])
def test_without_sudo_the_desk_says_what_is_lost_and_what_to_do(tmp_path, rule):
    with ssh_board(sudoer.prefix(tmp_path, rule)) as (sshd, key):
        done = evmperf(f"{sudoer.NAME}@127.0.0.1:{sshd.port}", *key, "--results", str(tmp_path / "r"))
    assert done.returncode == ExitStatus.USAGE
    (line,) = done.stderr.splitlines()
    assert "no benchmark can run" in line
    assert "NOPASSWD" in line


def test_another_user_than_root_measures_through_sudo_on_a_console(tmp_path, find):
    console = sudoer.LoginConsole(tmp_path, "ALL=(ALL) ALL")
    try:
        with pytest.raises(PasswordWanted):
            find(ports=(console.path,), user=sudoer.NAME)
        found = find(ports=(console.path,), user=sudoer.NAME, password=sudoer.PASSWORD)
        shell = boards.load(boards.Path(found.file)).drivers["EvmShellDriver"]
        assert shell["username"] == sudoer.NAME
        done = evmperf("--lg-env", found.file, "--results", str(tmp_path / "r"), *QUICK)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        console.close()


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
    assert len(said.err.splitlines()) == 1
    assert said.out == ""
    # With ports on which nothing talks it listens for so long:
    assert ports._LISTEN_S + ports._FURTHER_S * (len(ports.RATES) - 1) < 5


def test_nothing_of_the_desks_words_calls_a_foreign_board_an_evm(make_board, find):
    board = make_board("xunlong,orangepi-pc", model="Xunlong Orange Pi PC")
    found = find(ports=(board.path,), power="reset")
    said = f"{found} {find.said} {boards.Path(found.file).read_text()}"
    said = re.sub(r"Evm(?:Shell|UBoot)Driver|evmperf", "", said)
    assert not re.search(r"EVM|[Kk]3|TI\b", said)


def test_with_this_machine_as_tester_the_cable_is_measured(make_board, find):
    board = make_board("ti,am642-evm")
    file = boards.Path(find(ports=(board.path,), tester="local:eth7").file)
    made = boards.load(file)
    assert made.tester == "local:eth7"
    assert {"cpsw"} <= made.features
    assert made.options.cpsw.tester_address
    assert boardcheck.check(file) == []


ANY = {"name": "any", "title": "Any", "description": "any"}
GPT, MBR = "label: gpt\n", "label: dos\n"
TABLES = {  # sfdisk's table, MiB of its disk then and now, the number that a partition gets
    "gpt": (f"{GPT}size=64M\nsize=32M\n", 400, 400, 3),
    "gpt with a gap": (f"{GPT}1: size=64M\n3: size=32M\n", 400, 400, 4),
    "gpt of a smaller disk": (f"{GPT}size=64M\n", 100, 400, 2),
    "gpt with a limit": (f"{GPT}last-lba: 204766\nsize=64M\n", 400, 400, None),
    "mbr": (f"{MBR}size=64M\nsize=32M\n", 400, 400, 3),
    "mbr with a gap": (f"{MBR}1: size=64M\n3: size=32M\n", 400, 400, 2),
    "mbr with a logical one": (
        f"{MBR}start=2048,size=20480\nstart=22528,size=131072,type=5\nstart=24576,size=20480\n",
        400,
        400,
        3,
    ),
    "full mbr": (f"{MBR}size=8M\nsize=8M\nsize=8M\nsize=8M\n", 400, 400, None),
    "full gpt": (f"{GPT}size=+\n", 400, 400, None),
}


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("table", TABLES)
def test_a_scratch_partition_takes_free_space_only(tmp_path, table, tells):
    *made_of, number = TABLES[table]
    disks = Disks(tmp_path, *made_of, tells=tells)
    before = disks.table
    if number is None:
        with pytest.raises(UsageError, match="free behind its partitions"):
            scratch.plan(disks.run(scratch.SURVEY))
        return
    plan = scratch.plan(disks.run(scratch.SURVEY))
    assert plan.number == number
    assert ("copy of the table" in str(plan)) == (table == "gpt of a smaller disk")
    printed = disks.run(f"{{ {plan.command}; }} 2>&1")
    assert ("reboot" in scratch.check(plan, disks.run(scratch.SURVEY), printed)) == (not tells)
    assert disks.table == before | {(number, plan.start, plan.sectors)}
    again = disks.run(f"{{ {plan.command}; }} 2>&1")  # it is free no more
    assert disks.table == before | {(number, plan.start, plan.sectors)}, again


def test_a_disk_that_sfdisk_refuses_is_told_by_its_words(tmp_path):
    disks = Disks(tmp_path, *TABLES["gpt"][:3])
    plan = replace(scratch.plan(disks.run(scratch.SURVEY)), start=2048)
    before = disks.table
    printed = disks.run(f"{{ {plan.command}; }} 2>&1")
    assert disks.table == before
    with pytest.raises(BoardError, match=r"not made as planned: .*Failed to add #3 partition"):
        scratch.check(plan, disks.run(scratch.SURVEY), printed)


def test_a_scratch_partition_is_made_once_a_person_agreed(make_board, tmp_path):
    board = make_board("xunlong,orangepi-pc")
    board.disks = Disks(tmp_path, *TABLES["gpt"][:3])
    before, shown = board.disks.table, []
    request = FindBoard(folder=str(tmp_path / "found"), ports=(board.path,), make_scratch=True)
    desk.find(request, lambda reply: None, lambda plan: bool(shown.append(plan)))
    assert "sfdisk" in shown[0]
    assert board.disks.table == before
    found = desk.find(request, lambda reply: None, lambda plan: True)
    assert board.disks.table != before
    assert boards.load(boards.Path(found.file)).options.emmc.scratch == "/dev/mmcblk0p3"
    assert "/dev/mmcblk0p3 is overwritten" in found.changes


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
