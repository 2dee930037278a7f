"""A lab's own suites: the same results and output with evmperf installed as without it."""

import re
import shutil
import tarfile

import pytest

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
