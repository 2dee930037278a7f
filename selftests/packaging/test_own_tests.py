"""How the project's own tests run: spread over workers, and what they say at their end."""

import re
from pathlib import Path

from selftests.support import programs
from selftests.support.workers import VIRTUAL_EVM

ROOT = Path(__file__).resolve().parents[2]
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
