"""Figures of others and InfluxDB: read from a bucket of theirs by a mapping, and sent as what they are."""

import json

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.exits import ExitStatus
from evmperf.publish.influx.client import Store
from selftests.support.influxd import points

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
