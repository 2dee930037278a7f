"""Settings of InfluxDB, and the commands that use them, those on a bucket of others among them."""

import json
import re

import pytest
import yaml

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.places import project
from evmperf.publish.influx.client import Store, load
from selftests.support import spools
from selftests.support.influxd import TOKEN, points

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
