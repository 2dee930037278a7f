"""docs/query.md: each question is asked, of runs as they lie in a folder; the documentation as a site."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from evmperf.commands.app import sources
from evmperf.commands.cli.main import main
from evmperf.model.errors import LabError, UsageError
from selftests.support import runs, spools
from selftests.support.wheel import ROOT

BLOCKS = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/query.md").read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with nights, the last judged to be worse, and a recorded run with boots."""
    base = tmp_path_factory.mktemp("query")
    lost = ("emmc_ext4", "102400", "write_throughput")
    generator = runs.history(base / "results", nights=12)
    last = runs.write(base / "results", runs.results(generator, changed={lost: 0.7}), number=20)
    main(["check", str(last), "--against", "last:12", "--results", str(base / "results")])
    spools.recorded(base / "results")
    return base


@pytest.fixture
def database(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with duckdb.connect() as opened:
        opened.execute(BLOCKS[0])
        yield opened


@pytest.mark.parametrize("question", BLOCKS[1:], ids=lambda text: " ".join(text.split())[:40])
def test_each_question_has_an_answer(database, question):
    assert database.execute(question).fetchall()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_samples_are_those_of_the_export(database, form):
    assert main(["export", f"--{form}", f"exported.{form}", "--results", "results"]) == 0
    named = "coalesce(lab, ''), board, run, benchmark, \"case\", metric, value, unit, repetition"
    exported, ours = (
        database.execute(f"SELECT {named} FROM {source} ORDER BY ALL").fetchall()
        for source in (f"'exported.{form}'", "samples")
    )
    assert exported == ours
    assert len(ours) > 1000


def test_a_run_is_kept_whole_once_and_again_when_it_has_more(folder, tmp_path):
    run = next((folder / "results").glob("*-0003"))
    mine = shutil.copytree(run, tmp_path / run.name)
    history = tmp_path / "history"
    inodes = []
    for more in ("", "", "\n"):
        with (mine / "verdicts.jsonl").open("a") as file:
            file.write(more)
        sources.copy(history, mine)
        inodes.append((history / run.name / "results.jsonl").stat().st_ino)
    first, again, longer = inodes
    assert first == again != longer
    for name in ("results.jsonl", "run.json", "verdicts.jsonl"):
        assert (history / run.name / name).read_bytes() == (mine / name).read_bytes()
    assert [path.name for path in history.iterdir()] == [run.name]


def test_a_history_that_takes_nothing_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"file: cannot be written"):
        sources.copy(tmp_path / "file", next((folder / "results").glob("*-0003")))
    for named in ("", str(tmp_path / "file"), "s3://bucket/x"):
        with pytest.raises(UsageError, match="EVMPERF_HISTORY"):
            sources.history_of(named)


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
