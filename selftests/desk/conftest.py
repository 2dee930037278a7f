import pytest

from evmperf.commands.app import desk
from evmperf.commands.app.desk import FindBoard
from selftests.support.deskboard import DeskBoard


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
        return desk.find(request, said.append)

    find_it.said = said
    return find_it
