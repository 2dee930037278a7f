"""Many labs in one store: each has its own prefix, and names that are alike stay apart."""

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from evmperf.publish import site
from evmperf.publish.store import files
from evmperf.publish.store.places import StoreFolder
from evmperf.publish.store.source import StoredRuns
from selftests.support import spools

LABS = ("dallas", "pune")
BOARD = "am64xx-hsevm"


@pytest.fixture
def store(tmp_path):
    """Two labs with a board of the same name; one is twice as fast."""
    for factor, lab in enumerate(LABS, 1):
        for number in range(8):
            run = spools.a_run(number, id=f"night-{number}", lab=lab, board=BOARD)
            case = spools.a_result(run, 0, [factor * 10 + number / 100])
            files.add(StoreFolder(tmp_path / "store"), spools.write(tmp_path / lab, run, [case]))
    return StoreFolder(tmp_path / "store")


def test_each_lab_has_its_prefix_and_asks_for_its_own_runs(store):
    assert {path.name for path in store.root.glob("v1/*")} == {f"lab={lab}" for lab in LABS}
    for lab in LABS:
        runs = StoredRuns(store, lab).runs(BOARD)
        assert [entry.run.id for entry in runs] == [f"night-{number}" for number in range(8)]
    assert len(StoredRuns(store).runs(BOARD)) == 16


@pytest.mark.parametrize("more", [[], ["--from", "history"]])
def test_a_run_is_judged_by_its_own_lab(store, tmp_path, monkeypatch, capsys, more):
    monkeypatch.setenv("EVMPERF_HISTORY", str(store.root))
    run = spools.a_run(9, id="tonight", lab="dallas", board=BOARD)
    folder = spools.write(tmp_path / "results", run, [spools.a_result(run, 0, [10.05])])
    where = ["--against", "last:10", "--results", str(tmp_path / "results")]
    assert main(["check", str(folder), *where, *more]) == ExitStatus.OK
    assert "better" not in capsys.readouterr().out
    assert "tonight" in {e.run.id for e in StoredRuns(store, "dallas").runs(BOARD)}
    assert spool.read_run(folder).lab == "dallas"


def test_one_site_shows_both(store, tmp_path):
    written = site.write(tmp_path / "public", StoredRuns(store))
    assert (written.boards, written.runs, list(written.problems)) == (2, 16, [])
    text = (tmp_path / "public/index.html").read_text()
    assert all(f"{BOARD} in {lab}" in text for lab in LABS)
