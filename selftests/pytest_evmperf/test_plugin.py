"""The pytest plugin: what is collected, and what is a wrong call."""

import os
import re
import sys
from types import TracebackType

import pytest
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
VIRTUAL = ("--lg-env", "virtual.yaml")
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


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["-k", "emcc"], ExitStatus.NOTHING, "did you mean emmc? Drivers: "),
        (["-k", "emmc and ("], ExitStatus.USAGE, "emmc and ("),
        (["--vary", "nonsense:1"], ExitStatus.USAGE, "nonsense"),
        (["--lg-env", "am46x.yaml"], ExitStatus.USAGE, "did you mean am64x.yaml? Known boards: "),
        (["--lg-env", "am64x.yaml"], ExitStatus.USAGE, "needs $LG_PLACE"),
        (["--image", "no-such-image.wic", "-k", "boot_time"], ExitStatus.USAGE, "no-such-image.wic"),
        (["-k", "sata"], ExitStatus.NOTHING, "it has no SATA port"),
    ],
)
def test_who_started_a_session_is_told_why_it_was_refused(tmp_path, words, status, said):
    file = tmp_path / "session.json"
    own = (*VIRTUAL, "--answer", file, f"--results={tmp_path / 'results'}")
    done = programs.pytest(*own, *words, environment=WITHOUT_LAB, EVMPERF_LOCKS=str(tmp_path))
    assert done.returncode == status, done.stdout + done.stderr
    reply = answer(file, done.returncode)
    assert reply.ending is Ending.WRONG
    assert said in reply.sentence
    assert said in done.stdout + done.stderr
    assert not list(tmp_path.glob("results/*/run.json"))
    assert status == ExitStatus.USAGE or not (tmp_path / "results").exists()


def test_a_board_file_outside_the_checkout_selects_the_measuring_tests_only(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text((ENV_DIR / "virtual.yaml").read_text())
    done = programs.pytest("--lg-env", file, "--collect-only", "-q")
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert tests, done.stderr
    # tests/test_emmc.py declares test_emmc, and so on; no selftest is named like its file.
    assert all(re.search(r"(test_\w+)\.py::\1\[", test) for test in tests)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--lg-env FILE. Known boards: am335x.yaml"),
        (["--lg-env", ""], "--lg-env is empty"),
        (["--lg-env", "x" * 100_000], "no board file xxx"),
        (["--lg-env", "virtual.yaml", "--answer", "no-such-folder/x.json"], "x.json: cannot be written ("),
        (["--lg-env", "virtual.yaml", "--answer", "."], "--answer .: cannot be written ("),
        (
            ["--lg-env", "virtual.yaml", "-k", "emmc and (", "--answer", "/dev/full"],
            "full: cannot be written (",
        ),
    ],
)
def test_a_wrong_call_is_a_few_words(words, said):
    done = programs.pytest(*words, environment=WITHOUT_LAB)
    assert done.returncode == ExitStatus.USAGE
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stdout + done.stderr) < 2000


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
