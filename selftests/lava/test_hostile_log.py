"""A LAVA job's log that somebody wrote to get at the host that imports it."""

import json
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import joblog
from evmperf.model import limits
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import hostile
from selftests.support.lava_jobs import CATALOGUE, answered

BOARD = boards.load(boards.find("virtual"))


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder to import in, below a home."""
    known = {**catalogue.benchmarks(), **CATALOGUE}
    monkeypatch.setattr(catalogue, "benchmarks", lambda: known)
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".bashrc").write_text("ours")
    (home / ".ssh/authorized_keys").write_text("ours")
    monkeypatch.chdir(home / "work")
    return home


def read(text):
    Path("job.log").write_text(text, encoding="utf-8")
    return cli.main(["lava", "import", "job.log"])


@pytest.mark.parametrize("name", hostile.ESCAPES[:3])  # measure/test_hostile_board.py has all
def test_a_log_writes_no_file_of_the_importer(desk, name):
    evil = [hostile.member("number", b"12\n"), hostile.member(name.replace("/home", str(desk)))]
    assert read(answered(BOARD, hostile.answer(hostile.tar(*evil)))) == ExitStatus.FAILED
    assert (desk / ".bashrc").read_text() == "ours"
    assert (desk / ".ssh/authorized_keys").read_text() == "ours"
    assert {path.name for path in desk.iterdir()} == {"work", ".ssh", ".bashrc"}
    assert {path.name for path in (desk / "work").iterdir()} == {"job.log", "results"}


@pytest.mark.parametrize("name", ["/home/evil.yaml", "../evil.yaml", "results/../../evil"])
def test_a_log_names_no_path_as_its_board_file(desk, name, capsys):
    (desk / "evil.yaml").write_text((boards.ENV_DIR / "virtual.yaml").read_text())
    fine = hostile.answer(hostile.tar(hostile.member("number", b"12\n")))
    assert read(answered(BOARD, fine, board_file=name.replace("/home", str(desk)))) == ExitStatus.USAGE
    assert "job.log" in capsys.readouterr().err


def test_a_bomb_in_a_log_is_refused_and_kept_packed(desk):
    bomb = hostile.answer(hostile.tar(hostile.member("number", bytes(2 * limits.STEP_BYTES))))
    assert read(answered(BOARD, bomb)) == ExitStatus.FAILED
    assert sum(p.stat().st_size for p in (desk / "work").rglob("*")) < 10 * limits.MIB


ENTRY = {"dt": "2026-11-20T22:00:00", "lvl": "target", "msg": "x"}


def test_a_long_line_is_shortened_and_says_so():
    line = json.dumps({**ENTRY, "msg": "x" * (3 * limits.LAVA_LINE_CHARS)})
    (entry,) = joblog.parse(f"- {line}\n", "a log")
    assert len(entry.text) < limits.LAVA_LINE_CHARS + 100
    assert f"({2 * limits.LAVA_LINE_CHARS} more characters)" in entry.text


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        "- " + "[" * 100_000,
        "- " + "? " * 100_000,
        "- {dt: &a [x, x], lvl: [*a, *a], msg: x}",
        '- {"dt": 1, "lvl": "target", "msg": ""}',
        "- " + "{x: " * (limits.LAVA_LINE_CHARS // 2),
        "- " + json.dumps({**ENTRY, "msg": "\ud800"}),
        "- " + json.dumps({**ENTRY, "lvl": "results", "msg": {"error_msg": "\udfff"}}),
    ],
    ids=["deep", "deep yaml", "deep, no JSON", "not text", "no time", "long yaml", "half", "half within"],
)
def test_a_line_that_is_made_to_break_the_reader_is_named(line):
    with pytest.raises(UsageError, match="a log line 2"):
        joblog.parse(f"- {json.dumps(ENTRY)}\n{line}\n", "a log")


def test_a_log_without_end_is_not_read_at_all(desk, monkeypatch, capsys):
    monkeypatch.setattr(limits, "LAVA_LOG_BYTES", limits.MIB)
    assert read("x" * (limits.MIB + 1)) == ExitStatus.USAGE
    assert "larger than 1 MiB" in capsys.readouterr().err
