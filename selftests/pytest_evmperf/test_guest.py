"""A lab's own suites: the same with evmperf as without it; and a session beside the plugins that labs use."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from evmperf.measure.runs import spool
from evmperf.model.results import Status
from selftests.pytest_evmperf.test_without_a_switch import command
from selftests.support import programs
from selftests.support.seeds import place

ENVS = place("real/labgrid-envs")
WITHOUT = ("-p", "no:pytest_evmperf.plugin", "-p", "no:pytest_evmperf.fixtures")

CLASHES = {
    "conftest.py": """
import pytest

def pytest_addoption(parser):
    for name in ("--image", "--profile", "--results", "--release"):
        parser.addoption(name, default="the lab's")
    parser.addoption("--answer", dest="wait", default="another")

@pytest.fixture
def benchmark():
    return len

@pytest.fixture
def measure():
    return max
""",
    "env.yaml": """
targets:
  main:
    features: [moon]
    options: {board: [1, 2], boot: 7}
    drivers: {ManualPowerDriver: {name: none}}
options: {emmc: none}
""",
    "test_own.py": """
import pytest

@pytest.mark.parametrize("case", ["a", "bb"])
def test_length(benchmark, case, measure):
    assert measure(benchmark(case), 0)

def test_options(pytestconfig):
    option = pytestconfig.option
    assert {option.image, option.profile, option.results, option.release} == {"the lab's"}
    assert option.wait == "another"

def test_of_nothing(target):
    assert not target.resources
""",
}


@pytest.fixture
def suite(request, tmp_path):
    """The folder of a suite by its name."""
    name, folder = request.param, tmp_path / "suite"
    if name == "clashes":
        folder.mkdir()
        for file, text in CLASHES.items():
            (folder / file).write_text(text)
    elif not ENVS.is_dir():
        pytest.skip("the suites of labs are not beside this checkout")
    elif name == "own":
        shutil.copytree(ENVS / "suites" / "own", folder)
    else:
        with tarfile.open(ENVS / "labgrid-master.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        folder = tmp_path / "labgrid" / "examples" / name
    return folder


def seen(folder, *options):
    """Exit status, output and JUnit report of a suite, but for times and the list of plugins."""
    env = next(folder.glob("*.yaml"))
    report = folder.parent / "junit.xml"
    words = ("--lg-env", env.name, "--junitxml", report, "-p", "no:metadata", "-p", "no:html", *options)
    done = programs.pytest(*words, cwd=folder, LG_PLACE="nowhere")
    output = re.sub(r"(?m)^plugins: .*\n", "", done.stdout + done.stderr)
    return done.returncode, *(_timeless(text) for text in (output, report.read_text()))


def _timeless(text):
    text = re.sub(r'(time|timestamp)="[^"]*"', "", re.sub(r"\d+\.\d\ds( \(.*?\))?", "TIME", text))
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", re.sub(r"=+", "=", text))


@pytest.mark.parametrize("suite", ["own", "clashes", "strategy"], indirect=True)
def test_a_labs_suite_runs_the_same_with_and_without_evmperf(suite):
    before = sorted(path.name for path in suite.iterdir())
    assert seen(suite) == seen(suite, *WITHOUT)
    assert sorted(path.name for path in suite.iterdir() if path.name != "__pycache__") == before


@pytest.mark.parametrize("suite", ["clashes"], indirect=True)
def test_beside_options_of_the_same_names_evmperfs_have_longer_ones(suite):
    done = programs.pytest("--help", cwd=suite)
    assert done.returncode == 0, done.stderr
    names = re.findall(r"--(?:evmperf-)?(?:image|profile|boots)\b", done.stdout)
    assert sorted(set(names)) == [
        "--boots",
        "--evmperf-boots",
        "--evmperf-image",
        "--evmperf-profile",
        "--image",
        "--profile",
    ]


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
