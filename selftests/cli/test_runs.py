"""Which runs there are, and what was measured in them."""

import pytest

from evmperf.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support import spools


@pytest.fixture
def results(tmp_path):
    for number, board in enumerate(["am64xx-hsevm", "am64xx-hsevm", "j7200-evm"]):
        run = spools.a_run(number, board=board, id=f"{board}-{number}")
        spools.write(tmp_path, run, [spools.a_result(run, case) for case in range(2)])
    return tmp_path


def test_runs_are_listed_oldest_first_with_their_outcome(results, capsys):
    assert main(["runs", "--from", str(results)]) == ExitStatus.OK
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["am64xx-hsevm-0", "am64xx-hsevm-1", "j7200-evm-2"]
    assert "11.00" in lines[0]
    assert "All measured." in lines[0]


def test_of_a_board_and_the_newest_only(results, capsys):
    assert main(["runs", "--from", str(results), "--board", "am64xx-hsevm", "--last", "1"]) == 0
    assert "am64xx-hsevm-1" in capsys.readouterr().out.splitlines()[1]


def test_a_board_without_runs_and_a_folder_that_is_not_there(results, capsys):
    assert main(["runs", "--from", str(results), "--board", "x"]) == ExitStatus.USAGE
    assert "boards with runs: am64xx-hsevm, j7200-evm" in capsys.readouterr().err
    assert main(["runs", "--from", str(results / "none")]) == ExitStatus.USAGE
    assert "there is no such folder" in capsys.readouterr().err


def test_history_of_a_board_alone_lists_what_was_measured(results, capsys):
    assert main(["history", "am64xx-hsevm", "--results", str(results)]) == ExitStatus.OK
    out = capsys.readouterr().out
    assert "measured in the last 2 runs" in out
    assert "emmc_ext4 write_throughput: 2 cases in 2 runs" in out


def test_history_of_a_benchmark_shows_all_its_metrics(results, capsys):
    arguments = ["history", "am64xx-hsevm", "emmc_ext4", "--results", str(results)]
    assert main(arguments) == ExitStatus.OK
    assert "am64xx-hsevm emmc_ext4 write_throughput" in capsys.readouterr().out


def test_a_misspelt_board_gets_the_nearest(results, capsys):
    assert main(["history", "am64x-hsevm", "--results", str(results)]) == ExitStatus.USAGE
    assert "Did you mean am64xx-hsevm?" in capsys.readouterr().err


@pytest.mark.parametrize("mistake", [KeyError("moon"), ModuleNotFoundError("x", name="no_extra")])
def test_a_mistake_of_our_own_is_no_failed_board(monkeypatch, capsys, results, mistake):
    def wrong(_):
        raise mistake

    monkeypatch.setattr("evmperf.cli.sources.opened", wrong)
    assert main(["runs", "--from", str(results)]) == ExitStatus.INTERNAL
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "a mistake in evmperf" in said
