"""The first page of `evmperf --help` and what it loads, and commands that need no argument at a desk."""

import os
import sys

import numpy as np
import pytest

from evmperf.commands.cli import main
from evmperf.model.exits import ExitStatus
from evmperf.model.places import project
from selftests.support import programs, runs, spools

SEVEN = ["desk", "show", "check", "history", "compare", "why", "help"]


def test_the_help_has_a_line_for_what_a_desk_needs_and_names_of_the_rest(capsys):
    with pytest.raises(SystemExit, match="0"):
        main.main([])
    text = capsys.readouterr().out
    first = text.partition("At a desk:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in first] == SEVEN
    assert all(len(line.split()) > 2 for line in first)
    for group in main._COMMANDS.values():
        for name in group:
            assert name in text
    assert len(text.splitlines()) < 40


def test_the_last_run_is_shown_with_its_summary_first(tmp_path, capsys):
    for number, name in enumerate(("board-old", "board-new")):
        found = runs.results(np.random.default_rng(1), ["emmc_ext4"], count=3)
        spools.write(tmp_path, spools.a_run(id=name, started_ns=number + 1), list(found))
    assert main.main(["show", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("board-new: ")
    summary, _, tables = text.partition("eMMC ext4 (emmc_ext4)")
    assert "Storage read" in summary
    # One line for each buffer size, four figures in it.
    (line,) = (line for line in tables.splitlines() if line.startswith("100 KiB"))
    assert len(line.split()) >= 6


@pytest.mark.parametrize(("output", "end"), [("closed", (0, "")), ("/dev/full", (3, "output: No space"))])
@pytest.mark.parametrize("words", ["--help", "published"])
def test_output_that_nobody_reads_or_takes_is_no_mistake_of_ours(output, end, words):
    target = "| exec 0<&-" if output == "closed" else f">{output}"
    line = f"set -o pipefail; (sleep 0.2; exec {sys.executable} -m evmperf {words}) {target}"
    done = programs.run("bash", "-c", line, PYTHONUNBUFFERED="")
    status, told = end
    assert (done.returncode, told in done.stderr) == (status, True), done.stderr
    assert len(done.stderr.splitlines()) == bool(told)


def test_what_the_locale_cannot_print_is_a_question_mark():
    done = programs.run(sys.executable, "-m", "evmperf", "help", "judging", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-6 ? 3 %" in done.stdout


def test_a_page_is_shown_by_the_pager_of_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    status, shown = programs.at_terminal("help", "docs/boot.md")
    assert (status, "paged:# " in shown) == (ExitStatus.OK, True)
    assert main.main(["help"]) == 0
    assert capsys.readouterr().out == project("docs").joinpath("README.md").read_text()
    assert main.main(["help", "boott"]) == ExitStatus.USAGE
    assert "there is no page 'boott'; did you mean boot?" in capsys.readouterr().err


_SLOW = {"asyncio", "dataclasses", "evmperf_virtual.commands", "labgrid", "msgspec"}
_SLOW |= {"pytest", "secrets", "statistics", "yaml"}
_WITHOUT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
"""`make coverage` loads modules of its own."""


def test_help_loads_nothing_slow():
    program = (
        "import contextlib, sys\n"
        "from evmperf.commands.cli.main import main\n"
        "sys.argv = ['evmperf', '--help']\n"
        "with contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print('loaded:', *sys.modules)\n"
    )
    ended = programs.run(sys.executable, "-c", program, environment=_WITHOUT, check=True)
    help_text, loaded = ended.stdout.rsplit("loaded:", 1)
    assert "history" in help_text
    assert not _SLOW & set(loaded.split())
