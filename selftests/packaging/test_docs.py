"""The documentation as a site."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_pages_are_built_without_a_warning_and_can_be_searched(tmp_path):
    words = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", "docs", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    index = re.fullmatch(r"Search\.setIndex\((.*)\)", (tmp_path / "searchindex.js").read_text())
    found = json.loads(index[1])
    pages = {file.stem for file in (ROOT / "docs").glob("*.md")}
    assert set(found["docnames"]) == pages
    assert "labgrid" in found["terms"]
    contents = (tmp_path / "judging.html").read_text()
    assert all(f"{page}.html" in contents for page in pages - {"README", "judging"})


def test_pictures_of_the_documentation_are_small():
    large = {f.name: f.stat().st_size for f in (ROOT / "docs").rglob("*.png") if f.stat().st_size > 200_000}
    assert large == {}
