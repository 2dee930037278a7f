"""A lab's own benchmark: written by a command, tested, repeated, and its mistakes named."""

import subprocess
import sys

import pytest

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.commands.cli.main import main
from evmperf.model.errors import ToolError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import programs

PLAIN = """
targets:
  main:
    resources: {NetworkService: {address: 127.0.0.1, username: root}}
    drivers: {SSHDriver: {}}
"""
"""An env file of Labgrid's, without a word for evmperf."""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The folder of a lab, with a benchmark of its own."""
    monkeypatch.chdir(tmp_path)
    catalogue.benchmarks.cache_clear()
    assert main(["benchmark", "new", "own_copy"]) == ExitStatus.OK
    catalogue.benchmarks.cache_clear()
    yield tmp_path / "benchmarks" / "own_copy.py"
    catalogue.benchmarks.cache_clear()


def declared():
    catalogue.benchmarks.cache_clear()
    benchmark = catalogue.benchmark("own_copy")
    board = boards.load(boards.find("virtual"))
    return benchmark.declared_steps(board, benchmark.cases("full")[0], "full")


def test_its_own_test_passes_and_its_command_runs(own):
    test = own.with_name("_own_copy_test.py")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    own.parent.with_name("lab.yaml").write_text(PLAIN)
    done = programs.pytest("--lg-env", "lab.yaml", "-k", "own_copy", "--collect-only", cwd=own.parent.parent)
    assert "[own_copy-" in done.stdout, "that test is no suite of the lab's beside which evmperf is silent"
    test.rename(test.with_name("_of_the_lab_test.py"))
    done = programs.pytest("--lg-env", "lab.yaml", "-k", "own_copy", "--collect-only", cwd=own.parent.parent)
    assert "[own_copy-" not in done.stdout, "one of another name is"
    test.with_name("_of_the_lab_test.py").rename(test)
    step, *_ = declared()
    subprocess.run(
        ["sh", "-c", step.command], env={"OUT": str(own.parent), "PATH": "/usr/bin:/bin"}, check=True
    )
    (reading,) = step.parse({"dd": (own.parent / "dd").read_text()})
    assert reading.value > 1


def test_a_profile_repeats_by_itself(own):
    steps = declared()
    assert [(step.name, step.repetition) for step in steps] == [("copy", 0), ("copy 2", 1), ("copy 3", 2)]


def test_mistakes_in_it_are_file_and_line(own):
    text = own.read_text()
    own.write_text(text.replace('outputs.get("dd", "")', 'outputs["no"]', 1))
    with pytest.raises(ToolError, match=r"benchmarks/own_copy\.py:16: KeyError: 'no'"):
        declared()[0].parse({})
    own.write_text(text.replace("case.params['mib']", "case.params['gib']"))
    with pytest.raises(UsageError, match=r"benchmarks/own_copy\.py:24: KeyError: 'gib'"):
        declared()


@pytest.mark.parametrize("name", ["own_copy", "emmc_raw_fio_1g", "../own", "Own", ""])
def test_a_name_that_is_taken_or_wrong_is_refused(own, capsys, name):
    assert main(["benchmark", "new", name]) == ExitStatus.USAGE
    assert capsys.readouterr().err
