"""A board that nobody here made, at the desk: found at its boot loader, booted and measured."""

import json
import subprocess
import sys

import pytest

from evmperf.boards import board as boards
from selftests.support.foreignboard import ForeignBoard, card_or_skip

pytestmark = pytest.mark.virtual_evm


@pytest.fixture
def board(tmp_path):
    """A board with a card of its own, off."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    board = ForeignBoard(folder, card_or_skip())
    yield board
    board.close()


def desk(board, results, *more):
    command = [sys.executable, "-m", "evmperf", "desk", "--port", board.path, "--results", str(results)]
    return subprocess.run(
        [*command, *more],
        cwd=boards.ENV_DIR.parent,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_it_is_found_at_its_boot_loader_booted_and_measured(board, tmp_path):
    board.switch(True)
    board.stop_at(b"=> ")
    assert "is at U-Boot's prompt" in desk(board, tmp_path).stderr
    words = ["--boot", "--yes", "-k", "openssl_throughput and aes-128-cbc and 16384"]
    found = desk(board, tmp_path, *words)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Orange Pi PC" in found.stdout
    (run,) = tmp_path.glob("*/run.json")
    lines = map(json.loads, (run.parent / "results.jsonl").read_text().splitlines())
    # Not the control figures, which a session measures beside what was asked for.
    measured = [line for line in lines if line.get("benchmark") and line.get("driver") != "control"]
    assert [line["status"] for line in measured] == ["measured"]
