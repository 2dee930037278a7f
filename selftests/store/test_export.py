"""Samples of runs as columns, read by DuckDB."""

import duckdb
import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from selftests.support import spools

HOSTILE = 'x"\n} 1 \x00\x1b</a>\\ "'


@pytest.fixture
def results(tmp_path):
    """A recorded run, one of everything, and one of hostile names."""
    spools.recorded(tmp_path / "results")
    spools.of_catalogue(tmp_path / "results")
    run = spools.a_run(7, board=HOSTILE, lab=HOSTILE, release=HOSTILE, facts={"kernel": HOSTILE})
    cases = [spools.a_result(run, case=HOSTILE), spools.a_refusal(run, 2)]
    spools.write(tmp_path / "results", run, cases)
    return tmp_path / "results"


@pytest.fixture
def exported(results):
    """Call `evmperf export`; returns the file."""

    def export(name, *ids):
        file = results.parent / f"out.{name}"
        assert main(["export", *ids, "--from", str(results), f"--{name}", str(file)]) == 0
        return file

    return export


def count(results, *ids):
    """Samples of some runs, or all."""
    found = [spool.read_results(f) for f in results.iterdir() if not ids or f.name in ids]
    return sum(len(result.samples) for run in found for result in run)


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_every_sample_as_columns(results, exported, name):
    for ids in ((), (spools.RECORDED.name,)):
        question = f"SELECT count(*) FROM read_{name}('{exported(name, *ids)}')"
        assert duckdb.connect().execute(question).fetchone() == (count(results, *ids),)


def test_a_run_that_is_not_there(results, capsys):
    words = ["export", "none", "--from", str(results), "--csv", str(results.parent / "out")]
    assert main(words) == ExitStatus.USAGE
    assert "no run 'none'" in capsys.readouterr().err
