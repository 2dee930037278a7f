"""What follows one another on a board: each side runs its own image."""

import pytest

from evmperf.benchmarks import catalogue
from evmperf.boards.board import ENV_DIR
from evmperf.lab.provision.record import Book, InstallationEntry, with_images
from evmperf.model.errors import UsageError


@pytest.fixture
def board(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    return catalogue.board(ENV_DIR / "virtual-sd.yaml")


def test_a_side_without_an_image_gets_the_one_that_is_on_the_board(board):
    sides = [["args:quiet"], ["image:/images/b.wic"]]
    with pytest.raises(UsageError, match=r"args:quiet: .*virtual-evm-sd is unknown"):
        with_images(sides, board)
    Book(board).begins(InstallationEntry("a.wic", "a.wic", "/images/a.wic", "f", "c"))
    Book(board).booted("cid1", 7)
    assert with_images(sides, board) == [["image:/images/a.wic", "args:quiet"], ["image:/images/b.wic"]]


def test_sides_that_put_nothing_on_the_board_stay_as_they_are(board):
    assert with_images([[], ["args:quiet"]], board) == [[], ["args:quiet"]]
    both = [["image:a"], ["image:b"]]
    assert with_images(both, board) == both
