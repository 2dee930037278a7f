"""A foreign board for the tests of this folder, which wait to be asked."""

import pytest

from selftests.support import on_request
from selftests.support.foreignboard import ForeignBoard, card_or_skip

OPTION = "--foreign-board"


def pytest_addoption(parser):
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config, items):
    on_request.skip_unless_asked(config, items, OPTION, "foreign_board")


@pytest.fixture
def make_foreign(tmp_path):
    """A function that gives a board with a card of its own, off."""
    made = []

    def make(*, card=True):
        folder = tmp_path / f"foreign{len(made)}"
        folder.mkdir()
        original = card_or_skip()
        made.append(ForeignBoard(folder, original if card else None))
        return made[-1]

    yield make
    for board in made:
        board.close()
