"""One name for each thing, and both that it may have: rows, boards, commands, options."""

import re
from pathlib import Path

import pytest

from evmperf.benchmarks import wording
from evmperf.boards import board as boards
from evmperf.commands.cli import arguments
from evmperf.commands.cli.main import _parser, main
from evmperf.judge.rounds import matches
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from selftests.support import spools


def ended(*words):
    """The exit status of a command line."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("case", ["102400", "100 KiB", "100kib"])
@pytest.mark.parametrize("board", ["am64xx-hsevm", "am64x", "am64x.yaml"])
def test_a_row_and_a_board_are_found_by_either_name(tmp_path, capsys, board, case):
    run = spools.a_run(1, id="evm-1", board="am64xx-hsevm")
    spools.write(tmp_path, run, [spools.a_result(run, benchmark="emmc_ext4", case="102400")])
    assert boards.find(board).name == "am64x.yaml"
    words = ["history", board, "emmc_ext4", "--case", case, "--results", str(tmp_path)]
    assert ended(*words) == 0
    said = capsys.readouterr().out
    assert said.startswith("am64xx-hsevm emmc_ext4 write_throughput")
    assert "100 KiB  " in said


def test_a_metric_of_an_ab_is_named_by_either_name():
    key = Key("emmc_ext4", "102400", "write_throughput")
    assert wording.case(key.benchmark, key.case) == "100 KiB"
    assert matches(key, ["emmc_ext4/102400/*"])
    assert matches(key, ["emmc_ext4/100 KiB/*"])
    assert not matches(key, ["emmc_ext4/256 KiB/*"])


@pytest.mark.parametrize("share", ["2%", "2 %", "0.02"])
def test_a_share_is_said_in_either_way(share):
    assert _parser("ab").parse_args(["ab", "virtual", "--within", share]).within == 0.02


@pytest.mark.parametrize("words", [["WORD"], ["desk", "--WORD"], ["show", "WORD"], ["history", "WORD"]])
def test_no_message_quotes_a_word_that_nobody_reads_to_its_end(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    long = "x" * 100_000
    assert ended(*(word.replace("WORD", long) for word in words)) == ExitStatus.USAGE
    said = capsys.readouterr()
    assert "more characters)" in said.err
    assert len(said.out + said.err) < 4000
    assert len(str(UsageError(f"{long} {long}"))) < 600


def test_no_default_is_typed_into_a_help_text():
    """A number behind `default` is formatted from the constant, or by argparse."""
    typed = re.compile(r"help=\(?\s*\"[^\"]*default:? [a-z:]*\d")
    folder = Path(arguments.__file__).parent
    found = [file.name for file in folder.glob("*.py") if typed.search(file.read_text())]
    assert found == []
