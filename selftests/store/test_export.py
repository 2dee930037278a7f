"""Runs in the formats of others, read by their own validators where there are any."""

import xml.etree.ElementTree as ET

import duckdb
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import figures
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
    """Figures and samples of some runs, or all."""
    found = [spool.read_results(f) for f in results.iterdir() if not ids or f.name in ids]
    samples = sum(len(result.samples) for run in found for result in run)
    return sum(len(figures(run)) for run in found), samples


def test_junit(results, exported):
    root = ET.parse(exported("junit")).getroot()
    assert root.tag == "testsuites"
    for suite in root:
        cases = spool.read_results(results / suite.get("name"))
        assert len(suite.findall("testcase")) == len(cases) == int(suite.get("tests"))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures"))
    assert len(root.findall(".//property")) == count(results)[0]


def test_openmetrics(results, exported):
    families = list(text_string_to_metric_families(exported("openmetrics").read_text()))
    found = [sample for family in families for sample in family.samples]
    assert len(found) == count(results)[0]
    assert all(sample.timestamp for sample in found)
    assert any('"' in value and "\\" in value for sample in found for value in sample.labels.values())


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_every_sample_as_columns(results, exported, name):
    for ids in ((), (spools.RECORDED.name,)):
        question = f"SELECT count(*) FROM read_{name}('{exported(name, *ids)}')"
        assert duckdb.connect().execute(question).fetchone() == (count(results, *ids)[1],)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["none", "--from", "results"], "no run 'none'"), (["--from", "none"], "holds no runs")],
)
def test_a_run_that_is_not_there(results, capsys, monkeypatch, words, said):
    monkeypatch.chdir(results.parent)
    assert main(["export", *words, "--junit", "out"]) == ExitStatus.USAGE
    assert said in capsys.readouterr().err
    assert not (results.parent / "out").exists()
