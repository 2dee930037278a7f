"""The promise of docs/add-a-board.md, kept in a copy of the project: a board is one file."""

import json

import pytest

from selftests.support import copied
from selftests.support.copied import python

NEW = "env/am70-sk.yaml"
CALLS = """
import json, sys
from evmperf.commands.cli.main import main
for words in json.loads(sys.argv[1]):
    print("---", flush=True)
    assert main(words) == 0, words
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project in which somebody has begun a board as the page says."""
    root = copied.copy(tmp_path_factory.mktemp("copy") / "evmperf")
    before = files(root)
    evmperf(root, ["board", "new", "am70-sk", "--like", "j784s4", "--title", "AM70 SK"])
    assert files(root) - before == {NEW}
    (root / NEW).write_text((root / NEW).read_text().replace("FILL IN: ", ""))
    return root


def files(root):
    """What is in a folder, but what Python leaves."""
    found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    return {str(path) for path in found if "__pycache__" not in path.parts}


def evmperf(root, *calls):
    """Run the copy's `evmperf` so often in one process; its outputs."""
    return python(root, "-c", CALLS, json.dumps(calls)).split("---\n")[1:]


def test_it_is_checked_and_has_benchmarks_lava_jobs_and_a_device(copy, tmp_path):
    checked, listed, like, job, _ = evmperf(
        copy,
        ["board", "check", "am70-sk"],
        ["benchmark", "list", "--board", "am70-sk", "--json"],
        ["benchmark", "list", "--board", "j784s4", "--json"],
        ["lava", "render", "am70-sk", "-k", "emmc"],
        ["lava", "device", "am70-sk", "--into", str(tmp_path)],
    )
    assert str(copy / NEW) in checked
    runnable, its = ([entry["runnable"] for entry in json.loads(text)] for text in (listed, like))
    assert runnable == its
    assert any(runnable)
    assert 'device_type: "evm-am70-sk"' in job
    assert (tmp_path / "device-types" / "evm-am70-sk.jinja2").is_file()


def test_pytest_has_its_tests(copy):
    options = ["--lg-env", "am70-sk.yaml", "--collect-only", "-q", "-p", "no:cacheprovider"]
    assert "emmc" in python(copy, "-m", "pytest", *options, "-k", "emmc", "tests/test_emmc.py")


def test_the_selftests_of_each_board_pass_with_it(copy):
    tests = ("selftests/boards/test_board.py", "selftests/lava/test_lava_jobs.py")
    which = "am70 or of_the_guides or two_boards"
    assert "passed" in python(copy, "-m", "pytest", "-qx", "-pno:cacheprovider", "-k", which, *tests)
