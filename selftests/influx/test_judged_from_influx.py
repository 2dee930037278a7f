"""Guides and verdicts out of a real InfluxDB, and verdicts into it."""

import json
import re
import shutil

import pytest

from evmperf.benchmarks import wording
from evmperf.commands.cli import main as cli
from evmperf.judge import accepted
from evmperf.judge.nights import nights as nights_of
from evmperf.judge.published import releases as gather
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import Spool
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.results import Sample, Status
from evmperf.model.run import Run
from evmperf.publish.influx.push import push
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import runs
from selftests.support.influxd import points
from selftests.support.spools import a_case

LOST = ("emmc_ext4", "102400", "write_throughput")


@pytest.fixture(autouse=True)
def nothing_accepted(monkeypatch, tmp_path):
    monkeypatch.setattr(accepted, "FILE", tmp_path / "accepted.yaml")


@pytest.fixture
def nights(tmp_path):
    """Sixteen nights, in the last six of which a tenth of one metric is lost."""
    folder = tmp_path / "results"
    generator = runs.history(folder, nights=10)
    for number in range(10, 16):
        runs.write(folder, runs.results(generator, changed={LOST: 0.9}), number=number)
    return folder


def check(results, against, *more, run="am64xx-hsevm-0015"):
    return cli.main(["check", run, "--against", against, "--results", str(results), *more])


def verdicts(results, run="am64xx-hsevm-0015"):
    """Verdicts of a run by figure, the later over the earlier, and how many records there are."""
    file = results / run / "verdicts.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    found = [record for record in map(json.loads, lines) if record["record"] == "verdict"]
    return {(r["benchmark"], r["case"], r["metric"]): r for r in found}, len(found)


def test_published_guides_come_out_of_the_database_as_they_went_in(configured, tmp_path, capsys):
    assert cli.main(["push", "--results", str(imported(tmp_path))]) == 0
    # Not the changes: outside the baselines they are against the record, which has more releases.
    command = ["guide", "--release", "11.01", "--with=counts,outliers"]
    capsys.readouterr()
    texts = []
    for source in ("influx", "baselines"):
        assert cli.main([*command, "--from", source]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "am62lxx_evm-fs" in texts[0]


def imported(folder):

    for entry in gather.published():
        shutil.copytree(entry.folder, folder / entry.run.id)
    return folder


def test_a_guide_from_an_empty_bucket_and_without_settings_says_so(configured, monkeypatch, capsys):
    command = ["guide", "--release", "12.00", "--from", "influx"]
    assert cli.main(command) == ExitStatus.USAGE
    assert f"{configured.bucket}): holds no runs" in capsys.readouterr().err
    for name in ("URL", "TOKEN", "ORG", "BUCKET"):
        monkeypatch.delenv(f"EVMPERF_INFLUX_{name}")
    assert cli.main(command) == ExitStatus.USAGE
    assert "InfluxDB is not configured: set EVMPERF_INFLUX_URL" in capsys.readouterr().err


@pytest.mark.parametrize(("against", "status"), [("last:15", 1), ("last:4", 5), ("run:am64xx-hsevm-0004", 1)])
def test_verdicts_are_the_same_from_database_and_folder(configured, nights, capsys, against, status):
    assert cli.main(["push", "--results", str(nights)]) == 0
    capsys.readouterr()
    said = []
    for source in ("influx", str(nights)):
        arguments = ["--dry-run", "--from", source, "--json", "-"]
        assert check(nights, against, *arguments) == status
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert verdicts(nights) == ({}, 0)


def measured(case, at, *values, unit="MB/s", **more):
    samples = tuple(
        Sample("write_throughput", value, unit, number, at + 10 * number)
        for number, value in enumerate(values)
    )
    given = {"tools": {"fio": "fio-3.36"}, "status": Status.MEASURED if values else Status.FAILED, **more}
    return a_case(case=case, samples=samples, started_ns=at, **given)


MANY_RUNS = (
    [measured("4k", 1000, 9.5, 11.0, 10.0, 12.0), measured("a 'b' \"c\", d=e", 1100, 7.0)],
    # While the first is still running, on another board of that name.
    [measured("4k", 1005, 20.0, 21.0, 22.5), measured("8k", 1200, 3.0)],
    # Measured twice, the second time whole, and once in vain.
    [measured("4k", 3000, 30.0), measured("4k", 3100, 31.0, 33.0), measured("8k", 3200)],
    [measured("4k", 4000, 0.04, unit="GB/s"), measured("8k", 4100, 4.0, tools={"dd": "9.1"})],
    [
        measured("4k", 5000, 50.0, conditions={"medium": "sd", "counted_from": "EFI stub"}),
        measured("8k", 5100, 5.0, conditions={"variant": "of evmperf"}),
    ],
)


def test_nights_are_the_same_from_database_and_folder(store, tmp_path):
    for number, found in enumerate(MANY_RUNS, 1):
        run = Run(f"run-{number}", "evm", "full", os="Linux", started_ns=number * 1000 - 999)
        spool = Spool(tmp_path, run)
        spool.append(*found)
        list(push(store, [spool.folder]))
    there, here = InfluxRuns(store).runs("evm"), SpoolFolder(tmp_path).runs("evm")
    expected = [(night.run.id, dict(night.figures)) for night in nights_of(here)]
    assert [(night.run.id, dict(night.figures)) for night in nights_of(there)] == expected
    assert [len(figures) for _, figures in expected] == [2, 2, 1, 2, 2]
    # In any order, and of the last ones alone.
    for number in (4, 2, 0, 3):
        (night,) = nights_of([there[number]])
        assert dict(night.figures) == expected[number][1]


def test_a_check_puts_its_verdicts_into_run_report_and_database(configured, nights, capsys):
    assert check(nights, "last:15") == 1
    assert re.search(r"InfluxDB http.*: \d+ points sent\.", capsys.readouterr().err)
    kept, count = verdicts(nights)
    assert len(kept) == count > 50
    assert kept[LOST]["verdict"] == "worse"
    assert kept[LOST]["baseline"] == "last:15"
    assert kept[LOST]["driver"] == "emmc"
    assert kept[LOST]["change"] == pytest.approx(-0.1, abs=0.04)
    assert "since am64xx-hsevm-0010" in kept[LOST]["reason"]
    report = (nights / "am64xx-hsevm-0015" / "report.html").read_text()
    assert report.index("Worse than the baseline") < report.index("<h3")
    assert f"{wording.figure(Key(*LOST))}, against its earlier runs (at most 15): " in report
    assert points(configured, "verdicts") == count
    assert points(configured, "verdicts", metric="write_throughput", case="102400") == 1


def test_the_same_check_again_adds_nothing_and_another_replaces(configured, nights):
    check(nights, "last:15")
    before = verdicts(nights)
    check(nights, "last:15")
    assert verdicts(nights) == before
    assert check(nights, "last:4") == ExitStatus.NOTHING
    kept, count = verdicts(nights)
    assert count == 2 * before[1]
    assert kept[LOST]["verdict"] == "not comparable"
    # A check that decides nothing leaves the page.
    assert "Worse than" in (nights / "am64xx-hsevm-0015" / "report.html").read_text()
    assert points(configured, "verdicts") == before[1]


def test_without_the_server_the_verdict_stays_and_waits(configured, nights, monkeypatch, store, capsys):
    monkeypatch.setenv("EVMPERF_INFLUX_URL", "http://127.0.0.1:9")
    assert check(nights, "last:15") == 1
    shown = capsys.readouterr()
    assert "cannot be reached" in shown.err
    assert "worse" in shown.out
    _, count = verdicts(nights)
    list(push(store, [nights / "am64xx-hsevm-0015"]))
    assert points(configured, "verdicts") == count > 50
