"""Every board with published figures has a file, is known to a desk, and finds its figures."""

import re
from collections import Counter

import pytest

from evmperf.boards import board as boards
from evmperf.commands.cli import main as cli
from evmperf.judge.published import identity, record
from evmperf.lab.desk import boardfile
from evmperf.lab.desk.identity import BoardIdentity

REAL = {file.stem: boards.load(file) for file in boards.files().values() if "virtual" not in file.stem}
BEFORE_K3 = ("am335x", "am437x", "am57x", "am574x-idk", "k2g", "omapl138-lcdk")
SAME_TREE = {"am654x-idk": "its device tree is that of the EVM, with an overlay"}
"""Boards that a desk cannot tell from another by what they call themselves."""


@pytest.mark.parametrize("name", sorted(record.boards(record.entries())))
def test_a_board_of_the_record_has_a_file(name):
    assert name in {identity.board(board.name) for board in REAL.values()}


@pytest.mark.parametrize("stem", sorted(REAL))
def test_a_desk_knows_the_board(stem):
    compatible = REAL[stem].options.board.compatible
    assert bool(compatible) == (stem not in SAME_TREE)
    if compatible:
        found = boardfile.fitting(BoardIdentity(compatible=(compatible, "ti,another")))
        assert found
        assert found.stem == stem


def test_no_two_files_are_of_one_board():
    names = Counter(identity.board(board.name) for board in REAL.values())
    assert set(names) <= identity.names()
    assert set(names.values()) == {1}


@pytest.mark.parametrize("stem", sorted(REAL))
def test_only_boards_with_loaders_of_k3_claim_them(stem):
    (name,) = (name for name in REAL[stem].drivers if name.endswith("BootStrategy"))
    assert (name == "BootStrategy") == (stem in BEFORE_K3)
    if name == "BootStrategy":  # their card is the first device of U-Boot, as of Linux
        assert REAL[stem].options.mmcsd.uboot_device == 0
        assert "sd" in REAL[stem].strategy["media"]


@pytest.mark.parametrize("stem", ["am62x-sip-sk", "am335x", "k2g", "j742s2"])
def test_a_file_finds_its_published_figures(stem, capsys):
    assert cli.main(["published", stem]) == 0
    assert re.search(r"^\d+[._]\d+", capsys.readouterr().out, re.M)
