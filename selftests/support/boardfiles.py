"""Boards that only a test knows."""

from evmperf.boards.board import Board

GENERAL = {"name": "fake-evm", "title": "Fake EVM", "description": "one", "profile": "quick"}
"""What every board file says of the board itself."""


def fake_board(file, *features, **options):
    """A board with these features and options; what every file must say is there already."""
    said = {"board": GENERAL, "boot": {"medium": "sd"}, **options}
    return Board(file, frozenset(features), said)
