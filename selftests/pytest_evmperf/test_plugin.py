"""The pytest plugin: what is collected, and what is a wrong call."""

import os
import re
import shlex
import sys
from pathlib import Path
from types import TracebackType

import pytest
import yaml
from _pytest.config.argparsing import Parser

from evmperf.boards.board import ENV_DIR
from evmperf.model.ended import Ending
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import answer
from pytest_evmperf import options
from pytest_evmperf.plugin import TESTS
from pytest_evmperf.session import pytest_keyboard_interrupt
from selftests.support import programs

NO_CATALOGUE = """
from evmperf.benchmarks import catalogue
catalogue.benchmarks = dict
"""
CASES = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())
WITHOUT_LAB = {name: text for name, text in os.environ.items() if not name.startswith("LG_")}


def test_an_interrupt_between_two_lines_has_a_report():
    def frame():
        here = sys._getframe()  # a closure's first instruction has no line
        return here, lambda: here

    error = KeyboardInterrupt().with_traceback(TracebackType(None, frame()[0], 0, -1))
    interrupt = pytest.ExceptionInfo.from_exception(error)
    assert interrupt.tb.tb_lineno is None
    pytest_keyboard_interrupt(interrupt)
    assert "KeyboardInterrupt" in str(interrupt.getrepr(funcargs=True))


def test_a_driver_without_benchmarks_is_skipped(tmp_path):
    (tmp_path / "no_catalogue.py").write_text(NO_CATALOGUE)
    words = ["-p", "no_catalogue", "--lg-env", "am64x.yaml", f"--results={tmp_path}", "tests/test_emmc.py"]
    done = programs.pytest(*words, LG_PLACE="nowhere", PYTHONPATH=str(tmp_path))
    assert done.returncode == ExitStatus.NOTHING, done.stdout + done.stderr
    assert "1 skipped" in done.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["words"])
def test_who_started_a_session_is_told_why_it_was_refused(tmp_path, case):
    file, results = tmp_path / "session.json", tmp_path / "results"
    own = ("--lg-env", "virtual.yaml", "--answer", file, f"--results={results}") if "answered" in case else ()
    words = shlex.split(case["words"].replace("LONG", "x" * 100_000))
    done = programs.pytest(*own, *words, environment=WITHOUT_LAB, EVMPERF_LOCKS=str(tmp_path))
    said, status = done.stdout + done.stderr, case.get("status", ExitStatus.USAGE)
    assert done.returncode == status, said
    assert case["said"] in said
    assert "Traceback" not in said
    if not own:
        assert len(said) < 2000
        return
    reply = answer(file, done.returncode)
    assert reply.ending is Ending.WRONG
    assert case["said"] in reply.sentence
    assert not list(results.glob("*/run.json"))
    assert status == ExitStatus.USAGE or not results.exists()


def test_a_board_file_outside_the_checkout_selects_the_measuring_tests_only(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text((ENV_DIR / "virtual.yaml").read_text())
    done = programs.pytest("--lg-env", file, "--collect-only", "-q")
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert tests, done.stderr
    # tests/test_emmc.py declares test_emmc, and so on; no selftest is named like its file.
    assert all(re.search(r"(test_\w+)\.py::\1\[", test) for test in tests)


@pytest.mark.parametrize("option", ["--profile", "--tool", "--boots", "--wait", "--answer", "--results"])
def test_a_wrong_word_of_an_option_is_quoted_in_a_few_words(option):
    parser = Parser(_ispytest=True)
    options.add(parser)
    with pytest.raises(pytest.UsageError, match=f"argument {option}") as refused:
        parser.parse([option, "x" * 100_000])
    assert len(str(refused.value)) < 2000


@pytest.mark.parametrize("text", [None, b"", b'{"sentence": "x"}', b"[" * 9999])
def test_a_session_that_could_not_answer_is_told_by_its_status(tmp_path, text):
    file = tmp_path / "session.json"
    if text is not None:
        file.write_bytes(text)
    reply = answer(file, -9)
    assert (reply.ending, "-9" in reply.sentence) == (Ending.LAB, True)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["test_own.py"], ExitStatus.OK),
        (["--lg-env", "virtual.yaml"], ExitStatus.USAGE),
        ([str(TESTS / "test_emmc.py")], ExitStatus.USAGE),
    ],
)
def test_several_processes_are_refused_for_sessions_on_a_board_only(tmp_path, words, status):
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    results = tmp_path / "results"
    done = programs.pytest("-n", "1", f"--results={results}", *words, cwd=tmp_path, environment=WITHOUT_LAB)
    assert done.returncode == status, done.stdout + done.stderr
    assert not results.exists()


def test_a_mistake_of_our_own_is_no_broken_lab(tmp_path):
    (tmp_path / "wrong.py").write_text("def pytest_runtestloop():\n    raise KeyError('moon')\n")
    words = ["-p", "wrong", "--lg-env", "am64x.yaml", "--collect-only", f"--results={tmp_path / 'results'}"]
    done = programs.pytest(*words, "tests/test_emmc.py", LG_PLACE="nowhere", PYTHONPATH=str(tmp_path))
    assert done.returncode == ExitStatus.INTERNAL, done.stdout + done.stderr
