"""Two more boards that nobody here made, with a whole Debian and its systemd, at the desk."""

import subprocess

import pytest

from evmperf.boards import board as boards
from selftests.foreign.test_foreign_desk import CRYPTO, evmperf, results
from selftests.support import foreigndebian

pytestmark = [pytest.mark.virtual_evm, pytest.mark.foreign_board]


def test_a_raspberry_pi_is_found_at_its_boot_loader_and_measured(make_foreign, tmp_path):
    board = make_foreign(foreigndebian.PI)
    board.switch(True)
    board.stop_at(b"U-Boot> ")
    way = ["--port", board.path, "--results", str(tmp_path / "r")]
    told = evmperf(*way)
    assert "is at U-Boot's prompt" in told.stderr
    found = evmperf(*way, "--boot", "--yes", "-k", f"({CRYPTO}) or last_boot")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Raspberry Pi 3 Model B" in found.stdout
    facts, lines = results(tmp_path / "r")
    assert facts["machine"] == "aarch64"
    assert {line["status"] for line in lines if line.get("benchmark")} == {"measured"}


def test_an_imx_is_measured_over_ssh_beside_its_console_and_by_sudo(make_foreign, tmp_path):
    board = make_foreign(foreigndebian.IMX)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    board.write("/root/.ssh/authorized_keys", key.with_suffix(".pub").read_text(), "0100600")
    board.switch(True)
    board.wait_for(b"login: ")
    by_name = evmperf(
        "--port", board.path, "--user", "debian", "--results", str(tmp_path / "a"), "--yes", "-k", CRYPTO
    )
    assert by_name.returncode == 0, by_name.stdout + by_name.stderr
    (file,) = (tmp_path / "a" / "desk").glob("*.yaml")
    assert boards.load(file).drivers["EvmShellDriver"]["username"] == "debian"
    way = [f"root@127.0.0.1:{board.ssh_port}", "--port", board.path, "--key", str(key)]
    both = evmperf(
        *way, "--results", str(tmp_path / "b"), "--yes", "-k", "memory_bandwidth or disk_reads or last_boot"
    )
    assert both.returncode == 0, both.stdout + both.stderr
    assert "NXP i.MX8MPlus EVK board" in both.stdout
    end = both.stdout.rpartition("Boot  ")[2]
    for area in ("Storage read", "Memory", "Page: ", "Next: evmperf show"):
        assert area in end
    assert {line["status"] for line in results(tmp_path / "b")[1] if line.get("benchmark")} == {"measured"}
