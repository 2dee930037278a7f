"""A board that nobody here made at the desk: found, measured, reset, and switched by hand."""

import json
import subprocess
import sys

import pytest
from evmperf_virtual.steps import tool

from evmperf.boards import board as boards
from evmperf.lab.desk import identity
from evmperf.lab.desk.ports import Port, Voice
from selftests.support.handed import by_hand

pytestmark = pytest.mark.virtual_evm
asked = pytest.mark.foreign_board

CRYPTO = "openssl_throughput and aes-128-cbc and 16384"


def words(*more):
    return [sys.executable, "-m", "evmperf", "desk", *more]


def evmperf(*more):
    return run(words(*more))


def run(command):
    return subprocess.run(
        command,
        cwd=boards.ENV_DIR.parent,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def results(folder):
    (run,) = folder.glob("*/run.json")
    lines = (run.parent / "results.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    # Not the control figures, which a session measures beside what was asked for.
    return json.loads(run.read_text())["facts"], [one for one in found if one.get("driver") != "control"]


@pytest.fixture
def board(make_foreign):
    return make_foreign()


def test_it_is_found_at_its_boot_loader_booted_and_measured(board, tmp_path):
    """The short form of this folder, for each run of the tests."""
    board.switch(True)
    board.stop_at(b"=> ")
    words = ["--port", board.path, "--results", str(tmp_path)]
    told = evmperf(*words)
    assert "is at U-Boot's prompt" in told.stderr
    found = evmperf(*words, "--boot", "--yes", "-k", CRYPTO)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Orange Pi PC" in found.stdout
    assert [line["status"] for line in results(tmp_path)[1] if line.get("benchmark")] == ["measured"]


@asked
def test_it_is_found_measured_over_serial_and_reset_by_software(board, tmp_path):
    board.switch(True)
    board.wait_for(b"login: ")
    found = evmperf("--port", board.path, "--results", str(tmp_path / "a"), "--yes", "-k", CRYPTO)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Orange Pi PC" in found.stdout
    assert "EVM" not in found.stdout.replace("EVMPERF", "")
    facts, lines = results(tmp_path / "a")
    assert facts["power"] == "none"
    assert facts["machine"] == "armv7l"
    assert [line["status"] for line in lines if line.get("benchmark")] == ["measured"]
    again = evmperf("--port", board.path, "--results", str(tmp_path / "b"), "--power", "reset")
    assert again.returncode == 0, again.stdout + again.stderr
    (file,) = (tmp_path / "b" / "desk").glob("*.yaml")
    command = [sys.executable, "-m", "pytest", "--lg-env", str(file), "--boots=1", "-k", "default_rootfs"]
    reset = run([*command, f"--results={tmp_path / 'b'}"])
    assert reset.returncode == 0, reset.stdout + reset.stderr
    (boot_time,) = [line for line in results(tmp_path / "b")[1] if line.get("benchmark")]
    assert boot_time["status"] == "measured"
    assert "warm" in json.dumps(boot_time["conditions"])
    assert board.switched == [True]


@asked
def test_a_person_switches_it_and_says_that_it_is_enough(board, tmp_path):
    board.switch(True)
    board.wait_for(b"login: ")
    asked = {"OFF": 0, "ON": 0}

    def person(said):
        for word, on in (("OFF", False), ("ON", True)):
            if said.count(f"Switch the board {word}") > asked[word]:
                asked[word] += 1
                if asked["OFF"] == 2:
                    return b"s\n"
                board.switch(on)
        return b""

    command = words("--port", board.path, "--results", str(tmp_path), "--yes", "--power", "hand")
    status, said = by_hand([*command, "-k", "default_rootfs"], person, 400)
    assert status == 0, said
    facts, lines = results(tmp_path)
    assert facts["power"] == "hand"
    (boot_time,) = [line for line in lines if line.get("benchmark")]
    assert boot_time["status"] == "measured"
    assert [s["metric"] for s in boot_time["samples"]].count("boot_time") == 1
    assert facts["attempts"] == 1


@asked
def test_a_partition_made_by_its_person_is_overwritten_by_who_types_yes(board, tmp_path):
    board.switch(True)
    board.wait_for(b"login: ")
    before = partitions(board)
    words_ = ["--port", board.path, "--results", str(tmp_path), "--make-scratch"]
    first_call = evmperf(*words_, "--yes", "-k", "no_such_benchmark")
    assert "evmperf writes no partition table" in first_call.stdout
    assert partitions(board) == before
    command = next(line for line in first_call.stdout.splitlines() if "sfdisk --append" in line)
    identity.ask(Voice(Port(board.path), "Linux", "", 115200), command.strip())
    first, made = partitions(board)
    assert [first] == before
    assert made["start"] >= first["start"] + first["size"]
    status, said = by_hand(words(*words_), answers, 200)
    assert status == 0, said
    (file,) = (tmp_path / "desk").glob("*.yaml")
    assert boards.load(file).options.mmcsd.scratch == "/dev/mmcblk0p2"
    assert "/dev/mmcblk0p2 is overwritten" in said


def answers(said):
    """Yes to the partition, no to measuring."""
    return b"yes\n" if said.endswith("Type yes: ") else b"n\n" if said.endswith("[Y/n] ") else b""


def partitions(board):
    """The card's partitions as they are on it."""
    said = subprocess.run([tool("sfdisk"), "--json", board.card], capture_output=True, check=True)
    return json.loads(said.stdout)["partitiontable"]["partitions"]


@asked
def test_it_is_measured_over_ssh(board, tmp_path):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    board.write("/root/.ssh/authorized_keys", key.with_suffix(".pub").read_text(), "0100600")
    board.switch(True)
    board.wait_for(b"login: ")
    address = f"root@127.0.0.1:{board.ssh_port}"
    words = ["--key", str(key), "--results", str(tmp_path / "r"), "--yes", "-k", CRYPTO]
    done = evmperf(address, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    facts, lines = results(tmp_path / "r")
    assert facts["machine"] == "armv7l"
    assert [line["status"] for line in lines if line.get("benchmark")] == ["measured"]
    (file,) = (tmp_path / "r" / "desk").glob("*.yaml")
    assert "SSHDriver" in boards.load(file).drivers
    assert not boards.load(file).has_console
