"""The programs of the tests that no test starts call what is there."""

import sys
from pathlib import Path

from selftests.support import programs

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
