"""The promise of docs/add-a-board.md, kept in a copy of the project: a board is one file."""

import json

import pytest

from selftests.support import copied
from selftests.support.copied import python

NEW = "env/am70-sk.yaml"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project in which somebody has begun a board as the page says."""
    root = copied.copy(tmp_path_factory.mktemp("copy") / "evmperf")
    before = files(root)
    evmperf(root, "board", "new", "am70-sk", "--like", "j784s4", "--title", "AM70 SK")
    assert files(root) - before == {NEW}
    (root / NEW).write_text((root / NEW).read_text().replace("FILL IN: ", ""))
    return root


def files(root):
    """What is in a folder, but what Python leaves."""
    found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
    return {str(path) for path in found if "__pycache__" not in path.parts}


def evmperf(root, *words):
    """Run the copy's `evmperf`; its output."""
    return python(root, "-m", "evmperf", *words)


def test_it_is_checked_and_has_its_benchmarks(copy):
    assert str(copy / NEW) in evmperf(copy, "board", "check", "am70-sk")
    listed = json.loads(evmperf(copy, "benchmark", "list", "--board", "am70-sk", "--json"))
    like = json.loads(evmperf(copy, "benchmark", "list", "--board", "j784s4", "--json"))
    assert [entry["runnable"] for entry in listed] == [entry["runnable"] for entry in like]
    assert any(entry["runnable"] for entry in listed)


def test_it_has_lava_jobs_and_a_device(copy, tmp_path):
    job = evmperf(copy, "lava", "render", "am70-sk", "-k", "emmc")
    assert 'device_type: "evm-am70-sk"' in job
    evmperf(copy, "lava", "device", "am70-sk", "--into", str(tmp_path))
    assert (tmp_path / "device-types" / "evm-am70-sk.jinja2").is_file()


def test_pytest_has_its_tests(copy):
    options = ["--lg-env", "am70-sk.yaml", "--collect-only", "-q", "-p", "no:cacheprovider"]
    assert "emmc" in python(copy, "-m", "pytest", *options, "-k", "emmc")


def test_every_selftest_that_goes_over_boards_passes_with_it(copy):
    names = ("boards/test_board", "lava/test_lava_jobs", "benchmarks/test_catalogue", "benchmarks/test_steps")
    tests = [f"selftests/{name}.py" for name in names]
    which = "am70 or of_the_guides or two_boards"
    assert "passed" in python(copy, "-m", "pytest", "-qx", "-pno:cacheprovider", "-k", which, *tests)
