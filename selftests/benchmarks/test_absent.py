"""What a board file says that a board cannot have."""

import json

import pytest

from evmperf.benchmarks import catalogue
from evmperf.model.errors import UsageError
from selftests.support.boardfiles import GENERAL


def with_absent(tmp_path, absent):
    file = tmp_path / "absent.yaml"
    main = {"features": ["emmc"], "options": {"board": GENERAL, "absent": absent}}
    file.write_text(json.dumps({"targets": {"main": main}}))
    return file


@pytest.mark.parametrize("word", ["emmc", "emmc_ext4"])
def test_what_a_board_cannot_have_is_said_with_its_own_reason(tmp_path, word):
    board = catalogue.board(with_absent(tmp_path, {word: "this board has no eMMC fitted"}))
    assert catalogue.benchmark("emmc_ext4").unsupported(board) == "this board has no eMMC fitted"
    other = catalogue.benchmark("emmc_ext2").unsupported(board)
    assert (other == "this board has no eMMC fitted") == (word == "emmc")


@pytest.mark.parametrize(
    ("absent", "words"),
    [
        ({"emcm": "x"}, ["absent.yaml", "options.absent", "'emcm'", "did you mean 'emmc'"]),
        ({"emmc_ext5": "x"}, ["absent.yaml", "'emmc_ext5'", "did you mean 'emmc_ext"]),
    ],
)
def test_a_mistake_in_what_is_absent_is_named_with_its_file(tmp_path, absent, words):
    with pytest.raises(UsageError) as error:
        catalogue.board(with_absent(tmp_path, absent))
    for word in words:
        assert word in str(error.value)
