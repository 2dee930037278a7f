"""A foreign board for the tests of this folder; Debian itself on it waits to be asked."""

import pytest

from selftests.support.foreignboard import ForeignBoard, card_or_skip


@pytest.fixture(scope="session")
def foreign_card():
    return card_or_skip()


@pytest.fixture
def make_foreign(tmp_path, foreign_card):
    """A function that gives a board with a card of its own, off."""
    made = []

    def make(*, card=True):
        folder = tmp_path / f"foreign{len(made)}"
        folder.mkdir()
        made.append(ForeignBoard(folder, foreign_card if card else None))
        return made[-1]

    yield make
    for board in made:
        board.close()
