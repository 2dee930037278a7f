"""One history: commands keep runs in the lab's store and judge by it, killed or side by side."""

import json
import os
import shutil
from pathlib import Path

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from evmperf.publish.store.places import StoreFolder
from evmperf.publish.store.source import StoredRuns
from selftests.support import runs, spools

BOARD = "am64xx-hsevm"
NIGHTS = 12


@pytest.fixture
def nights(tmp_path):
    """Folders of nights, in the last of which nothing changed."""
    runs.history(tmp_path / "results", nights=NIGHTS)
    return sorted((tmp_path / "results").iterdir())


@pytest.fixture(autouse=True)
def named(tmp_path, monkeypatch):
    """The lab's store is named."""
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))


def store():
    return StoredRuns(StoreFolder(Path(os.environ["EVMPERF_HISTORY"])))


def check(folder, against="last:10"):
    return main(["check", str(folder), "--against", against, "--results", str(folder.parent)])


def test_a_check_keeps_the_run_with_its_verdicts_and_later_ones_are_judged_by_it(nights, tmp_path, capsys):
    for folder in nights:
        check(folder)
    kept = store().runs()
    assert [entry.run.id for entry in kept] == [folder.name for folder in nights]
    last = json.loads(_query("SELECT count(*) AS n FROM verdicts", capsys))
    assert last[0]["n"] > 50
    # The folders go, as those of a CI job do: the store is what is left to judge by.
    tonight = tmp_path / "tonight" / nights[-1].name
    shutil.copytree(nights[-1], tonight)
    shutil.rmtree(tmp_path / "results")
    assert check(tonight) in (ExitStatus.OK, ExitStatus.UNDECIDED)
    assert main(["runs", "--from", "history"]) == ExitStatus.OK
    shown = capsys.readouterr().out
    assert all(folder.name in shown for folder in nights)


def test_without_a_name_there_is_no_store(nights, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("EVMPERF_HISTORY")
    home = tmp_path / "home"
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
    for folder in nights:
        check(folder)
    assert main(["runs", "--results", str(nights[0].parent)]) == ExitStatus.OK
    listed = capsys.readouterr().out
    assert all(folder.name in listed for folder in nights)
    assert not list(home.rglob("*.parquet"))
    for words in (
        ["store", "query", "FROM runs"],
        ["store", "add", str(nights[0])],
        ["runs", "--from", "history"],
    ):
        assert main(words) == ExitStatus.USAGE
        assert "EVMPERF_HISTORY is not set: " in capsys.readouterr().err


def test_a_file_is_no_store(nights, monkeypatch, capsys):
    monkeypatch.setenv("EVMPERF_HISTORY", str(nights[0] / "run.json"))
    for words in ("check", "store add", "site --from history -o site"):
        assert main([*words.split(), *(() if "site" in words else (str(nights[-1]),))]) == ExitStatus.USAGE
        assert "run.json: EVMPERF_HISTORY names a file" in capsys.readouterr().err


def test_runs_lists_what_can_be_shown(nights, tmp_path, capsys):
    assert main(["store", "add", *map(str, nights)]) == ExitStatus.OK
    shutil.rmtree(nights[0])
    capsys.readouterr()
    assert main(["runs", "--results", str(tmp_path / "results")]) == ExitStatus.OK
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(names) == NIGHTS - 1
    for name in names:
        assert main(["show", name, "--results", str(tmp_path / "results")]) == ExitStatus.OK


def _query(question, capsys):
    capsys.readouterr()
    assert main(["store", "query", "--json", question]) == ExitStatus.OK
    return capsys.readouterr().out


def test_a_dry_run_and_a_run_that_goes_on_are_not_kept(nights):
    main(["check", str(nights[-1]), "--against", "last:10", "--results", "none", "--dry-run"])
    run = spools.a_run(board=BOARD, ended_ns=0)
    live = spool.Spool(nights[0].parent, run)
    live.hold()
    check(live.folder)
    live.release()
    assert store().runs() == []


def test_a_store_that_takes_nothing_costs_no_verdict(nights, monkeypatch, capsys):
    monkeypatch.setattr("evmperf.publish.store.files.add", _full)
    assert check(nights[-1]) in (ExitStatus.OK, ExitStatus.UNDECIDED)
    assert f"{nights[-1].name}: is not in" in capsys.readouterr().err


def _full(*_):
    raise spool.LabError("no space left")
