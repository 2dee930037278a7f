"""Which runs there are, and what was measured in them."""

import os

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs.history import run_folder
from evmperf.measure.runs.spool import Spool
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import spools


@pytest.fixture
def results(tmp_path):
    for number, board in enumerate(["am64xx-hsevm", "am64xx-hsevm", "j7200-evm"]):
        run = spools.a_run(number, board=board, id=f"{board}-{number}")
        spools.write(tmp_path, run, [spools.a_result(run, case) for case in range(2)])
    return tmp_path


def test_runs_are_listed_oldest_first_with_their_outcome(results, capsys):
    assert main(["history", "--from", str(results)]) == ExitStatus.OK
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["am64xx-hsevm-0", "am64xx-hsevm-1", "j7200-evm-2"]
    assert "11.00" in lines[0]
    assert "All measured." in lines[0]
    assert main(["history", "am64xx-hsevm", "--from", str(results), "--last", "1"]) == 0
    assert "am64xx-hsevm-1" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["x"], "Boards with runs: am64xx-hsevm, j7200-evm"),
        (["am64x-hsevm"], "did you mean am64xx-hsevm?"),
        (["--from", "none"], "none: is no folder of runs"),
    ],
)
def test_where_there_is_no_run_others_are_named(results, capsys, words, told):
    assert main(["history", "--from", str(results), *words]) == ExitStatus.USAGE
    assert told in capsys.readouterr().err


def test_history_of_a_board_alone_lists_what_was_measured(results, capsys):
    assert main(["history", "am64xx-hsevm", "--results", str(results)]) == ExitStatus.OK
    out = capsys.readouterr().out
    assert "measured in the last 2 runs" in out
    assert "emmc_ext4 write_throughput: 2 cases in 2 runs" in out


@pytest.mark.parametrize("mistake", [KeyError("moon"), ModuleNotFoundError("x", name="no_extra")])
def test_a_mistake_of_our_own_is_no_failed_board(monkeypatch, capsys, results, mistake):
    def wrong(*_):
        raise mistake

    monkeypatch.setattr("evmperf.commands.app.sources.opened", wrong)
    assert main(["history", "--from", str(results)]) == ExitStatus.INTERNAL
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "a mistake in evmperf" in said


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("last", 2),
        ("last~1", 1),
        ("last~2", 0),
        ("j7200", 2),
        ("am64xx-hsevm-1", 1),
        *((wrong, None) for wrong in ("last~3", "last~", "am64xx", "nothing", "")),
    ],
)
def test_a_run_has_many_names(results, given, found):
    # A run that was judged since is no newer for that: `last` is the last that `history` lists.
    os.utime(results / "am64xx-hsevm-0" / "run.json", (4e9, 4e9))
    if found is None:
        with pytest.raises(UsageError):
            run_folder(given, results)
    else:
        assert run_folder(given, results) == sorted(results.iterdir())[found]


def test_a_run_at_work_is_no_run_that_was_killed(tmp_path, capsys):
    spool = Spool(tmp_path, spools.a_run(1, id="evm-1", outcome=""))
    spool.hold()
    for command in (["history", "--from", str(tmp_path)], ["show", "last", "--results", str(tmp_path)]):
        assert main(command) == ExitStatus.OK
        assert "at work" in capsys.readouterr().out
    spool.release()
    assert main(["history", "--from", str(tmp_path)]) == ExitStatus.OK
    assert "at work" not in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    target = tmp_path / "file" / "nightly.yml"
    assert main(["gitlab", "pipeline", "-o", str(target)]) == ExitStatus.USAGE
    assert str(target) in capsys.readouterr().err
