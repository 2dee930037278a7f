"""Settings of InfluxDB, and the commands that use it: figures, guides and verdicts out of it and into it."""

import json
import re
import shutil

import pytest
import yaml

from evmperf.benchmarks import wording
from evmperf.commands.cli import main as cli
from evmperf.judge import accepted
from evmperf.judge.nights import nights as nights_of
from evmperf.judge.published import releases as gather
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import Spool
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.places import project
from evmperf.model.results import Sample, Status
from evmperf.model.run import Run
from evmperf.publish.influx.client import Store, load
from evmperf.publish.influx.push import push
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import runs, spools
from selftests.support.influxd import TOKEN, points
from selftests.support.spools import a_case

FULL = {
    "EVMPERF_INFLUX_URL": "http://influx:8086/",
    "EVMPERF_INFLUX_TOKEN": TOKEN,
    "EVMPERF_INFLUX_ORG": "lab",
    "EVMPERF_INFLUX_BUCKET": "evmperf",
}


def test_all_variables_or_none():
    assert load({}) is None
    config = load(FULL)
    assert (config.url, config.bucket) == ("http://influx:8086", "evmperf")
    assert TOKEN not in f"{config} {config!r}"


@pytest.mark.parametrize("around", ["{}\n", "{}\r\n", "\ufeff{}", " {} ", "\ufeff{}\r"])
def test_what_an_editor_leaves_around_a_token_is_not_of_it(around):
    assert load({**FULL, "EVMPERF_INFLUX_TOKEN": around.format(TOKEN)}).token == TOKEN


WRONG_URLS = (
    "influx:8086",
    "ftp://influx",
    "http://",
    "http://me:hunter2@influx",
    "me:hunter2@influx:8086",
    "http://me:hunter2@[::1",
)
NO_TOKENS = (f"{TOKEN}\nx", f"{TOKEN}\x00", f"{TOKEN}é", f"x\ufeff{TOKEN}")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        *((name, "", f"InfluxDB: set {name}, too") for name in FULL),
        *(("EVMPERF_INFLUX_URL", url, "address") for url in WRONG_URLS),
        *(("EVMPERF_INFLUX_TOKEN", token, r"EVMPERF_INFLUX_TOKEN .* U\+") for token in NO_TOKENS),
    ],
)
def test_a_wrong_setting_is_named_without_what_is_secret_in_it(name, value, said):
    with pytest.raises(UsageError, match=said) as error:
        load({**FULL, name: value})
    assert TOKEN not in str(error.value)
    assert "hunter2" not in str(error.value)


def test_push_sends_what_waits_and_says_so(configured, tmp_path, capsys):
    for number in range(2):
        run = spools.a_run(number)
        spools.write(tmp_path, run, [spools.a_result(run)])
    push = ["push", f"--results={tmp_path}"]
    assert cli.main(push) == 0
    assert capsys.readouterr().out == ("made-up-0000: 4 points\nmade-up-0001: 4 points\n")
    assert cli.main(push) == 0
    assert capsys.readouterr().out == ""
    assert cli.main([*push, "made-up-0000"]) == 0
    assert points(configured, "samples") == 4


def test_push_names_the_points_that_were_refused(configured, tmp_path, capsys):
    run = spools.a_run()
    spools.write(tmp_path, run, [spools.with_a_bad_point(run)])
    assert cli.main(["push", f"--results={tmp_path}"]) == 0
    shown = capsys.readouterr()
    assert "made-up-0000: cannot be parsed: samples," in shown.err


def history(*arguments):
    return cli.main(["history", "made-up", "emmc_ext4", *arguments])


@pytest.fixture
def three_runs(tmp_path):
    for number, level in enumerate([1.0, 5.0, 3.0]):
        run = spools.a_run(number, release=f"11.0{number}")
        cases = [spools.a_result(run, n, [level, level + n]) for n in range(2)]
        spools.write(tmp_path, run, cases)
    return tmp_path


def test_figures_are_the_same_from_database_and_folder(configured, three_runs, capsys):
    assert cli.main(["push", f"--results={three_runs}"]) == 0
    capsys.readouterr()
    assert history("write_throughput", "--from=influx") == 0
    stored = capsys.readouterr().out
    assert history("write_throughput", f"--results={three_runs}") == 0
    beside = capsys.readouterr().out
    assert stored.split("\n", 1)[1] == beside.split("\n", 1)[1]
    assert f"from {configured.url}" in stored
    assert TOKEN not in stored
    assert "case 0  ▁█▅\n" in beside
    assert "2026-09-21 13:46  11.00            quick         1.50 MB/s" not in beside
    assert "11.01            quick         5.50 MB/s  (min 5.00, max 6.00, n 2)" in beside


def test_history_of_one_case(three_runs, capsys):
    assert history("write_throughput", "--case=case 1", f"--results={three_runs}") == 0
    shown = capsys.readouterr().out
    assert "case 1" in shown
    assert "case 0" not in shown
    assert history("write_throughput", "--last=1", f"--results={three_runs}") == 0
    assert "11.00" not in capsys.readouterr().out


def test_the_compose_file_brings_the_server_that_is_tested():
    folder = project("dashboards")
    services = yaml.safe_load((folder / "docker-compose.yml").read_text())["services"].values()
    (tested,) = re.findall(r"influxdata/influxdb/v2 v([\d.]+)", (folder / "influxd/2.10/go.mod").read_text())
    images = {service["image"] for service in services if service["image"].startswith("influxdb:")}
    assert images == {f"influxdb:{tested}"}


MAPPING = """
bucket: {bucket}
measurement: fio
field: bw
series: [host, test]
commit: build
unit: MB/s
"""
START_S, DAY_S = 1_700_000_000, 86_400


@pytest.fixture
def theirs(influxd, tmp_path):
    """The mapping of thirty nights that a lab has in InfluxDB, with a loss in the last four."""
    bucket = influxd.bucket()
    lines = [
        f"fio,host=evm\\ 1,test={test},build={n:02d}c0ffee bw={100.0 + n % 3 - loss * (n >= 26)},iops=3i "
        f"{(START_S + n * DAY_S) * 10**9}"
        for n in range(30)
        for test, loss in (("read", 0), ("write", 40))
    ]
    with Store(bucket) as store:
        store.write(lines)
    file = tmp_path / "lab.yaml"
    file.write_text(MAPPING.format(bucket=bucket.bucket))
    return file


def test_a_bucket_of_others_is_judged_and_sent_as_foreign(theirs, configured, tmp_path, capsys):
    results = tmp_path / "runs"
    assert cli.main(["import", str(theirs), "--results", str(results)]) == 0
    assert "30 new runs (foreign-lab)" in capsys.readouterr().out
    for entry in SpoolFolder(results).runs()[20:]:
        status = cli.main(
            ["check", entry.run.id, "--results", str(results), "--json", str(tmp_path / "said")]
        )
    assert status == ExitStatus.FAILED
    verdicts = {v["benchmark"]: v["verdict"] for v in json.loads((tmp_path / "said").read_text())["verdicts"]}
    assert verdicts == {"evm 1|read": "same", "evm 1|write": "worse"}
    assert cli.main(["push", "--results", str(results)]) == 0
    assert points(configured, "samples") == points(configured, "samples", kind="foreign") == 60
    assert points(configured, "samples", board="foreign-lab") == 60
    capsys.readouterr()
    shown = []
    for source in ("influx", str(results)):
        assert cli.main(["history", "foreign-lab", "evm 1|write", "--from", source]) == 0
        shown.append(capsys.readouterr().out.split("\n", 1)[1])
    assert shown[0] == shown[1]
    with Store(configured) as store:
        losses = 'from(bucket: bucket) |> range(start: 0) |> filter(fn: (r) => r._field == "loss")'
        (worst,) = store.query(f"{losses} |> group() |> max()")
    assert worst["_value"] == pytest.approx(0.4, abs=0.02)


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
    for entry in gather.published():
        shutil.copytree(entry.folder, tmp_path / entry.run.id)
    assert cli.main(["push", "--results", str(tmp_path)]) == 0
    # Not the changes: outside the baselines they are against the record, which has more releases.
    command = ["guide", "--release", "11.01", "--with=counts,outliers"]
    capsys.readouterr()
    texts = []
    for source in ("influx", "baselines"):
        assert cli.main([*command, "--from", source]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "am62lxx_evm-fs" in texts[0]


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
