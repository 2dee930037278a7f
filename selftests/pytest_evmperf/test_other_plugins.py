"""A session beside the plugins that labs use, all at once: repeat, rerunfailures, randomly, timeout, sugar,
reportlog, allure, html and cov. xdist is refused: test_plugin.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evmperf.measure.runs import spool
from evmperf.model.results import Status
from selftests.pytest_evmperf.test_without_a_switch import command
from selftests.support import programs

PLUGINS = Path(__file__).parents[1] / "pytest-plugins.txt"
SUITE = """
from pathlib import Path

SEEN = Path(__file__).with_name("seen")


def test_that_fails_once(shell):
    seen = SEEN.exists()
    SEEN.touch()
    assert seen
    assert shell.run_check("echo there", timeout=5) == ["there"]
    lines, errors, status = shell.run("echo there; false", timeout=5)
    assert (lines, errors, status) == (["there"], [], 1)
"""


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugins")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-deps")
    subprocess.run([*pip, "--target", folder, "-r", PLUGINS], check=True)
    return folder


def test_executions_of_a_case_are_repetitions_of_its_row(plugins, fake, tmp_path):
    fake.switch(True)
    fake._come_up()
    suite = tmp_path / "lab" / "test_lab.py"
    suite.parent.mkdir()
    suite.write_text(SUITE)
    files = {"--report-log": "log.jsonl", "--alluredir": "allure", "--html": "page.html"}
    options = ["--catalogue", suite, "--count=2", "--reruns=1", "--timeout=600", "--cov=lab", "--force-sugar"]
    options += [f"{option}={tmp_path / name}" for option, name in files.items()]
    select = "openssl_throughput and sha512 or fails_once"
    words = command(tmp_path, fake, {}, "--lg-initial-state", "shell", "-k", select, *options)
    path = f"{plugins}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    session = programs.run(*words, PYTHONPATH=path)
    assert session.returncode == 0, session.stdout
    (folder,) = (run.parent for run in (tmp_path / "results").glob("*/run.json"))
    stored = (folder / spool.RECORDS).read_text().splitlines()
    measured = [line for line in map(json.loads, stored) if line.get("benchmark") == "openssl_throughput"]
    assert len(measured) == 12
    rows = [row for row in spool.read_results(folder) if row.benchmark == "openssl_throughput"]
    assert len(rows) == 6
    for row in rows:
        assert row.status is Status.MEASURED
        assert [sample.repetition for sample in row.samples] == [0, 1]
        first, second = row.samples
        assert first.time_ns != second.time_ns, "one measurement, counted twice"
        values = sorted(line["samples"][0]["value"] for line in measured if line["case"] == row.case)
        assert sorted(sample.value for sample in row.samples) == values
    texts = [(folder / name).read_bytes() for row in rows for name in row.raw if "openssl.txt" in name]
    assert len(set(texts)) == 2, "one execution's output was written over the other's"
    assert all((tmp_path / name).exists() for name in files.values())
    assert "1 rerun" in session.stdout
    (line,) = [text for text in session.stdout.splitlines() if text.startswith("sha512     16384 ")]
    first, second = next(row for row in rows if row.case == "sha512|16384").values("throughput")
    assert float(line.split()[2]) == pytest.approx((first + second) / 2000, rel=0.005)  # kB/s, shown as MB/s
