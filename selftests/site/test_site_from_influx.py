"""The site from a real InfluxDB: what the spools give, but for what a database does not keep."""

import json
import re

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.history import SpoolFolder
from evmperf.publish import site
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import RunPush
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import years


@pytest.fixture
def bucket(influxd):
    return influxd.bucket()


def drawn(public, case="evm/uboot_emmc_raw/2000000.html"):
    text = (public / case).read_text()
    return json.loads(re.search(r'id="data">(.*)</script>', text)[1])


def test_it_draws_what_the_spools_have(bucket, tmp_path, monkeypatch, capsys):
    years.write(tmp_path / "results", ["evm"], 24, ["uboot_emmc_raw"], changed=1.0)
    with Store(bucket) as store:
        for folder in sorted((tmp_path / "results").iterdir()):
            RunPush.of(store, folder).send()
        site.write(tmp_path / "database", InfluxRuns(store))
    site.write(tmp_path / "folder", SpoolFolder(tmp_path / "results"))
    assert drawn(tmp_path / "database") == drawn(tmp_path / "folder")
    month = (tmp_path / "database/evm/2025-12.html").read_text()
    assert "6.12.0-ti → 6.12.1-ti" in month
    assert ">report</a>" not in month

    for name in ("url", "token", "org", "bucket"):
        monkeypatch.setenv(f"EVMPERF_INFLUX_{name.upper()}", getattr(bucket, name))
    assert cli.main(["site", "--from", "influx", "-o", str(tmp_path / "command")]) == 0
    assert "24 runs of 1 board" in capsys.readouterr().out
    assert drawn(tmp_path / "command") == drawn(tmp_path / "folder")
