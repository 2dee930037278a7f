"""Instruments tell what they are for before they run anything, and call what is there; how the tests run."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from selftests import speed
from selftests.instruments import why_faults
from selftests.support import programs
from selftests.support.workers import VIRTUAL_EVM

HERE = Path(__file__).parent / "instruments"


def _name(file):
    return ".".join(file.relative_to(HERE).with_suffix("").parts)


NAMES = sorted(_name(file) for file in HERE.rglob("*.py") if '__name__ == "__main__"' in file.read_text())


def test_the_readme_lists_every_instrument_with_its_question_and_how_long_it_takes():
    page = (HERE / "README.md").read_text()
    rows = re.findall(r"^\| `python -m selftests\.([\w.]+)[^|]*\| [^|]+ \| [^|]+ \|$", page, re.M)
    commands = {f"instruments.{name.removesuffix('.__main__')}" for name in NAMES}
    assert sorted(rows) == sorted(commands - {"instruments.speed"} | {"speed"})


@pytest.mark.parametrize("name", NAMES)
def test_help_runs_nothing(name, capsys, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    module = importlib.import_module(f"selftests.instruments.{name}")
    with pytest.raises(SystemExit) as end:
        module.main(["--help"])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: python -m selftests.")
    assert module.__doc__.strip() in said


def test_a_fault_that_is_not_there_is_named_beside_those_that_are(capsys):
    with pytest.raises(SystemExit) as end:
        why_faults.main(["no such fault"])
    assert end.value.code == 2
    assert "'no such fault'; the names are: a CPU hog" in capsys.readouterr().err


def test_make_bench_finds_its_command():
    assert speed.main is importlib.import_module("selftests.instruments.speed.__main__").main


ROOT = Path(__file__).parents[1]
# Names and calls: what a change elsewhere breaks. These programs are not typed further.
CODES = ("attr-defined", "call-arg", "call-overload", "name-defined", "import-not-found")


def test_names_and_calls_fit():
    """By mypy as `make lint` calls it, whose cache has all that these programs import."""
    there = [path for path in (ROOT / "selftests").rglob("*.py") if not path.name.startswith("test_")]
    files = {path for path in there if "__main__" in path.name or '"__main__"' in path.read_text()}
    files |= set((ROOT / "selftests" / "instruments").rglob("*.py"))
    assert len(files) > 20
    names = [str(path.relative_to(ROOT)) for path in sorted(files)]
    done = programs.run(sys.executable, "-m", "mypy", "--show-error-codes", *names)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if line.endswith(tuple(f"[{c}]" for c in CODES))]
    ours = [line for line in said if line.startswith(tuple(names))]
    assert not [line for line in ours if "explicitly export" not in line]


ONE = "import pytest\n\n\ndef test_it():\n    pass\n\n\ndef test_more():\n    pass\n"
# Not in one word: the scheduler would take this file for one of them.
VIRTUAL = f"import pytest\n\npytestmark = pytest.mark.{VIRTUAL_EVM}\n" + ONE.partition("\n")[2]
DESK = f"from selftests.support.{'deskboard'} import this_machine\n\n\n" + ONE


def spread(folder, *words, **files):
    """Run pytest on files in a folder, under the hooks of the project's own tests."""
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text("from selftests.conftest import *\n")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    virtual_evm: x\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    words = (*words, "--rootdir", folder, "-c", folder / "pytest.ini", folder)
    return programs.pytest(*words, PYTHONPATH=str(ROOT))


def test_all_virtual_evms_and_all_desks_are_one_workers(tmp_path):
    files = {"a": ONE, "b": VIRTUAL, "c": ONE, "d": VIRTUAL, "e": DESK, "f": DESK}
    done = spread(tmp_path, "-n", "2", "-v", "--durations=1", **files)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"\[(gw\d)\] .* PASSED .*test_(\w)\.py", done.stdout)
    workers = {file: {worker for worker, name in ran if name == file} for file in files}
    assert len(ran) == 12
    assert workers["b"] == workers["d"]
    assert workers["e"] == workers["f"]
    assert all(len(of_file) == 1 for of_file in workers.values()), workers
    (virtual,) = workers["b"]
    assert [name for worker, name in ran if worker == virtual][:4] == ["b", "b", "d", "d"]
    assert re.search(r"^Busy: gw0 \d+ s, gw1 \d+ s$", done.stdout, re.MULTILINE)


def test_a_test_without_cases_is_an_error(tmp_path):
    text = "import pytest\n\n\n@pytest.mark.parametrize('n', [])\ndef test_it(n):\n    pass\n"
    done = spread(tmp_path, e=text)
    assert done.returncode == 4
    assert "test_e.py::test_it[NOTSET] has no cases" in done.stderr
