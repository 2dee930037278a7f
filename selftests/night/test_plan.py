"""What a plan of a night may say."""

import pytest

from evmperf.model.errors import UsageError
from evmperf.night import plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("repeat: sometimes\nboards: [{board: virtual.yaml}]\n", r"night.yaml: --repeat=sometimes"),
        (
            "boards: [{board: virtual.yaml, repeat: 'until:0%'}]\n",
            r"night.yaml: boards, number 1: --repeat=until:0%",
        ),
        ("repeat: 5\nboards: [{board: virtual.yaml}]\n", "repeat must be of type str, not 5"),
    ],
)
def test_a_wrong_repeat_is_refused_where_it_stands(tmp_path, text, said):
    file = tmp_path / "night.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        plan.read(file)


def test_a_board_may_be_measured_over_more_often_than_the_others(tmp_path):
    file = tmp_path / "night.yaml"
    file.write_text(
        "repeat: '2'\n"
        "boards: [{board: virtual.yaml}, {board: virtual.yaml, repeat: 'until:2%/5m'}]\n"
    )
    read = plan.read(file)
    assert (read.repeat, [job.repeat for job in read.boards]) == ("2", ["", "until:2%/5m"])
