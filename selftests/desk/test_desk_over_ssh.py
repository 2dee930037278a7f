"""`evmperf desk` over a real sshd, and for users that become root by a real sudo."""

import contextlib
import json
import re
import tempfile

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.lab.desk.identity import PasswordWanted
from evmperf.lab.tester import SshTester
from evmperf.model.errors import ToolError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.places import STEP_FOLDER
from selftests.support import programs, sudoer
from selftests.support.deskboard import evmperf, this_machine
from selftests.support.placelab import until
from selftests.support.sshd import Sshd


@contextlib.contextmanager
def ssh_board(prefix=(), user="root"):
    """A real sshd, whose users may read the key: its address and key for the desk, and the server."""
    with tempfile.TemporaryDirectory(prefix="evmperf-sshd-") as name:
        folder = boards.Path(name)
        folder.chmod(0o755)
        sshd = Sshd(folder, prefix=prefix)
        try:
            yield [f"{user}@127.0.0.1:{sshd.port}", "--key", str(folder / "user")], sshd
        finally:
            sshd.stop()


QUICK = ("--yes", "-k", "openssl_throughput and aes-128 and 16384")


def test_a_desk_on_a_board_that_another_host_measures_is_refused(tmp_path):
    boot = boards.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    now = boards.Path("/proc/uptime").read_text().split()[0]
    holder = boards.Path(STEP_FOLDER, "holder")
    with ssh_board() as (way, _), this_machine():
        holder.parent.mkdir(exist_ok=True)
        before = f"{boot} {now} step-of-bob desk7 bob@desk7 since 22:31 UTC\n"
        holder.with_name("head").unlink(missing_ok=True)  # as the session of bob did
        holder.write_text(before)
        try:
            done = programs.evmperf("desk", *way, "--results", tmp_path / "r", *QUICK)
            assert holder.read_text() == before
        finally:
            holder.unlink()
    assert done.returncode == ExitStatus.LAB_BROKEN
    assert "the board is in use: bob@desk7 since 22:31 UTC measures there" in done.stdout + done.stderr


def test_another_user_than_root_measures_through_sudo_over_ssh(tmp_path):
    prefix = sudoer.prefix(tmp_path, "ALL=(ALL) NOPASSWD: ALL")
    with ssh_board(prefix, sudoer.NAME) as (way, sshd):
        done = evmperf(*way, "--results", str(tmp_path / "r"), *QUICK)
        assert done.returncode == 0, done.stdout + done.stderr
        shell = SshTester(f"{sudoer.NAME}@127.0.0.1", sshd.options)
        try:
            assert shell.run("id -u", 20).text == "0\n"
            with pytest.raises(ToolError, match="killed"):
                shell.run(f"echo $$ >{tmp_path}/pid; sleep 60; true", 1)
            hung = boards.Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/cmdline")
            until(lambda: not (hung.exists() and hung.read_text()), 10)  # a zombie has none
        finally:
            shell.close()


def test_a_plain_debian_is_measured_over_ssh_alone_without_anything_installed(tmp_path):
    words = ("--results", tmp_path / "r", "--power", "hand", "--yes", "-k", "processor")
    with ssh_board() as (way, sshd):
        keyless = evmperf(way[0], "--key", "/dev/null")
        assert f"put a key there first: ssh-copy-id -p {sshd.port} root@127.0.0.1" in keyless.stderr
        with this_machine():
            done = programs.evmperf("desk", *way, *words)
            assert not boards.Path(STEP_FOLDER).exists()
    refused = evmperf(way[0])
    assert refused.returncode == ExitStatus.LAB_BROKEN
    assert "cannot be reached" in refused.stderr
    assert "ssh-copy-id" not in refused.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--power hand needs the board's console" in done.stdout + done.stderr
    (file,) = (tmp_path / "r" / "desk").glob("*.yaml")
    main = yaml.safe_load(file.read_text())["targets"]["main"]
    assert set(main["drivers"]) == {"SSHDriver", "BootStrategy"}
    assert re.search(r"^State: load .* of memory free", done.stdout, re.MULTILINE)
    left = done.stdout.partition("Left out")[2].partition("What it changes")[0]
    assert len(left.splitlines()) <= 5
    assert "Storage writes: no eMMC or SD card " in left or "Storage writes: the board has no sfdisk" in left
    assert "apt-get install --no-install-recommends " in left
    for noise in ("skipped", "xml", "session starts", "passed", "===="):
        assert noise not in done.stdout
    assert "%]" not in done.stdout
    end = done.stdout.partition("What it changes")[2]
    assert re.search(r"^Processor +\d+ iterations/s ", end, re.MULTILINE)
    page = re.search(r"^Page: (\S+)$", end, re.MULTILINE)[1]
    assert boards.Path(page).is_file()
    assert re.search(r"^Next: evmperf show ", end, re.MULTILINE)
    (run,) = (tmp_path / "r").glob("*/results.jsonl")
    (line, *_) = [json.loads(text) for text in run.read_text().splitlines() if '"processor"' in text]
    assert line["conditions"]["variant"].startswith("evmperf-gauge for ")


def test_a_console_has_ssh_beside_it_for_files(make_board, find):
    board = make_board("xunlong,orangepi-pc")
    with ssh_board() as ((address, _, key), _):
        found = find(ports=(board.path,), address=address.removeprefix("root@"), key=key, tester="local")
    made = boards.load(boards.Path(found.file))
    assert set(made.resources) == {"RawSerialPort", "NetworkService"}
    assert made.tester == "local"


def test_boots_over_ssh_need_systemd(find):
    with ssh_board() as ((address, _, key), _):
        found = find(address=address, key=key, power="reset")
    timed = boards.load(boards.Path(found.file)).power == "reset"
    assert timed == boards.Path("/run/systemd/system").is_dir()


@pytest.mark.parametrize("rule", ["", "ALL=(ALL) ALL"])
def test_without_sudo_the_desk_says_what_is_lost_and_what_to_do(tmp_path, rule):
    with ssh_board(sudoer.prefix(tmp_path, rule), sudoer.NAME) as (way, _):
        done = evmperf(*way, "--results", str(tmp_path / "r"))
    assert done.returncode == ExitStatus.USAGE
    (line,) = done.stderr.splitlines()
    assert "no benchmark can run" in line
    assert "NOPASSWD" in line


def test_another_user_than_root_measures_through_sudo_on_a_console(tmp_path, find):
    console = sudoer.LoginConsole(tmp_path, "ALL=(ALL) ALL")
    try:
        with pytest.raises(PasswordWanted):
            find(ports=(console.path,), user=sudoer.NAME)
        with pytest.raises(UsageError, match="check the password"):
            find(ports=(console.path,), user=sudoer.NAME, password="another")
        found = find(ports=(console.path,), user=sudoer.NAME, password=sudoer.PASSWORD)
        file = boards.Path(found.file)
        shell = boards.load(file).drivers["EvmShellDriver"]
        assert (shell["username"], shell["password"]) == (sudoer.NAME, sudoer.PASSWORD)
        assert file.stat().st_mode & 0o077 == 0
        done = evmperf("--lg-env", found.file, "--results", str(tmp_path / "r"), *QUICK)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        console.close()
