"""A session that sends to a real InfluxDB which is killed before its end and comes back."""

import json
from pathlib import Path

import pytest

from evmperf.commands.cli import main as cli
from evmperf.publish.influx.config import Config
from evmperf.publish.report.shape import text_table
from selftests.support.influxd import TOKEN, points

pytestmark = pytest.mark.virtual_evm


def command_lines() -> list[str]:
    """What `ps` shows of every process."""
    shown = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            shown.append(path.read_text(errors="replace"))
        except OSError:
            continue  # it has ended
    return shown


def expected(folder: Path) -> dict[str, int]:
    """Points by measurement, counted from the spool without the code under test."""
    records = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    results = [record for record in records if record["record"] == "result"]
    boots = [record for record in records if record["record"] == "boot"]
    return {
        "run": 1,
        "result": len(results),
        "sample": sum(len(result.get("samples", ())) for result in results),
        "boot_mark": sum(len(boot["marks"]) for boot in boots),
    }


def test_killing_the_server_loses_nothing_and_doubles_nothing(
    measuring, own_influxd, monkeypatch, tmp_path, capsys
) -> None:
    config: Config = own_influxd.bucket()
    for name in ("url", "token", "org", "bucket"):
        monkeypatch.setenv(f"EVMPERF_INFLUX_{name.upper()}", getattr(config, name))
    # The report of pytest-html is there for those who ask, and tells no secret either.
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--html={tmp_path}/pytest-report.html")
    session = measuring("uboot_emmc_raw or (emmc_ext2 and (102400 or 262144))")
    session.wait_until(lambda: len(session.measured()) >= 3)
    assert not [line for line in command_lines() if TOKEN in line]
    own_influxd.stop()
    assert session.wait() == 0, session.log.read_text()
    output = session.log.read_text()
    assert "cannot be reached" in output
    assert "Nothing is lost: `evmperf push`" in output
    own_influxd.start()
    for _ in range(2):
        assert cli.main(["push", str(session.folder)]) == 0
    found = {name: points(config, name) for name in expected(session.folder)}
    assert found == expected(session.folder)
    pytest_report = tmp_path / "pytest-report.html"
    page = pytest_report.read_text()
    assert (session.folder / "report.html").as_uri() in page
    for result in session.measured():
        title, *rows = text_table([result], 300).splitlines()
        assert title in page
        assert any(line.split()[0] in page for line in rows)
    for path in [session.log, pytest_report, *session.folder.rglob("*")]:
        if path.is_file():
            assert TOKEN.encode() not in path.read_bytes(), path
    assert TOKEN not in capsys.readouterr().out
