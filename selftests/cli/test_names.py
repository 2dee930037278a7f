"""The command line: its first page, what it loads and completes, one name for each thing, and both that it
may have: rows, boards, options.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evmperf.benchmarks import wording
from evmperf.boards import board as boards
from evmperf.commands.cli import arguments
from evmperf.commands.cli import main as cli
from evmperf.judge.rounds import matches
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.places import project
from selftests.support import programs, runs, spools


def ended(*words):
    """The exit status of a command line."""
    try:
        return cli.main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("case", ["102400", "100 KiB", "100kib"])
@pytest.mark.parametrize("board", ["am64xx-hsevm", "am64x", "am64x.yaml"])
def test_a_row_and_a_board_are_found_by_either_name(tmp_path, capsys, board, case):
    run = spools.a_run(1, id="evm-1", board="am64xx-hsevm")
    spools.write(tmp_path, run, [spools.a_result(run, benchmark="emmc_ext4", case="102400")])
    assert boards.find(board).name == "am64x.yaml"
    words = ["history", board, "emmc_ext4", "--case", case, "--results", str(tmp_path)]
    assert ended(*words) == 0
    said = capsys.readouterr().out
    assert said.startswith("am64xx-hsevm emmc_ext4 write_throughput")
    assert "100 KiB  " in said


def test_a_metric_of_an_ab_is_named_by_either_name():
    key = Key("emmc_ext4", "102400", "write_throughput")
    assert wording.case(key.benchmark, key.case) == "100 KiB"
    assert matches(key, ["emmc_ext4/102400/*"])
    assert matches(key, ["emmc_ext4/100 KiB/*"])
    assert not matches(key, ["emmc_ext4/256 KiB/*"])


@pytest.mark.parametrize("share", ["2%", "2 %", "0.02"])
def test_a_share_is_said_in_either_way(share):
    assert cli._parser("ab").parse_args(["ab", "virtual", "--within", share]).within == 0.02


@pytest.mark.parametrize("words", [["WORD"], ["desk", "--WORD"], ["show", "WORD"], ["history", "WORD"]])
def test_no_message_quotes_a_word_that_nobody_reads_to_its_end(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    long = "x" * 100_000
    assert ended(*(word.replace("WORD", long) for word in words)) == ExitStatus.USAGE
    said = capsys.readouterr()
    assert "more characters)" in said.err
    assert len(said.out + said.err) < 4000
    assert len(str(UsageError(f"{long} {long}"))) < 600


def test_no_default_is_typed_into_a_help_text():
    """A number behind `default` is formatted from the constant, or by argparse."""
    typed = re.compile(r"help=\(?\s*\"[^\"]*default:? [a-z:]*\d")
    folder = Path(arguments.__file__).parent
    found = [file.name for file in folder.glob("*.py") if typed.search(file.read_text())]
    assert found == []


SEVEN = ["desk", "show", "check", "history", "compare", "why", "help"]


def test_the_help_has_a_line_for_what_a_desk_needs_and_names_of_the_rest(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main([])
    text = capsys.readouterr().out
    first = text.partition("At a desk:\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in first] == SEVEN
    assert all(len(line.split()) > 2 for line in first)
    for group in cli._COMMANDS.values():
        for name in group:
            assert name in text
    assert len(text.splitlines()) < 40


def test_the_last_run_is_shown_with_its_summary_first(tmp_path, capsys):
    for number, name in enumerate(("board-old", "board-new")):
        found = runs.results(np.random.default_rng(1), ["emmc_ext4"], count=3)
        spools.write(tmp_path, spools.a_run(id=name, started_ns=number + 1), list(found))
    assert cli.main(["show", "--results", str(tmp_path)]) == 0
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
    assert cli.main(["help"]) == 0
    assert capsys.readouterr().out == project("docs").joinpath("README.md").read_text()
    assert cli.main(["help", "boott"]) == ExitStatus.USAGE
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


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("evmperf comp", "compare"),
        ("evmperf lava sub", "submit"),
        ("evmperf lava render virtual --kind na", "native"),
    ],
)
def test_commands_options_and_choices_are_completed(tmp_path, line, word):
    answer = tmp_path / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    evmperf = Path(sys.executable).with_name("evmperf")
    subprocess.run([evmperf], env=environment, check=False, timeout=60)
    assert word in [said.strip() for said in answer.read_text().split("\n")]
