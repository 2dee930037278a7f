"""How long a session will take, and the signs of life meanwhile."""

import os
import pty
import subprocess
import sys
import termios

import pytest

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Prepare, SearchStep
from evmperf.commands.app.forecast import Forecast
from evmperf.model.errors import UsageError
from evmperf.model.repeats import Repeats
from evmperf.model.results import Case

TICKING = """\
import time
from pytest_evmperf import ticker
ticker._LOG_S = ticker._TERMINAL_S = 0.2
shown = iter("abcdefgh")
sign = ticker.Ticker(lambda: f"0:0{next(shown)} of 0:09: booting Linux" + "." * 200)
time.sleep(0.9)
sign.close()
print("after")
"""


def a_benchmark(place=Place.SHELL, repeats=1, steps=None, labels="ab"):
    own = [Measure("all", "", 99, 10, parse=None)] if place is not Place.BOOT else []
    profile = Profile(tuple(map(Case, labels)), repeats)
    declared = steps or (lambda: own)
    return Benchmark("x", "emmc", "X", ("X",), (), {"quick": profile}, place, lambda *_: declared())


def cases(*benchmarks):
    return [(b, case) for b in benchmarks for case in b.profiles["quick"].cases]


def undeclared():
    raise UsageError("no")


OWN, ALL = Prepare("own", "", 9, 1), Measure("all", "", 99, 10, parse=None, shared="all")
SEARCH, CLEAN = SearchStep("search", list, 45, 10), CleanUp("clean up", "", 9, 1)
BOOT = 15
"""Seconds of a boot, of which none was seen yet; a case takes 1 s beside its steps."""


@pytest.mark.parametrize(
    ("benchmarks", "repeats", "seconds"),
    [
        # A change of prompt is a boot, and so is each that is measured.
        ([a_benchmark(), a_benchmark(Place.UBOOT)], Repeats(), [BOOT + 11, 11, BOOT + 11, 11]),
        ([a_benchmark(Place.BOOT, repeats=5)], Repeats(), [5 * BOOT + 1] * 2),
        ([a_benchmark()], Repeats(3), [BOOT + 31, 31]),
        # What cases or benchmarks share is expected once.
        ([a_benchmark(steps=lambda: [OWN, ALL])], Repeats(), [BOOT + 12, 2]),
        ([a_benchmark(steps=lambda: [ALL], labels="a")] * 2, Repeats(), [BOOT + 11, 1]),
        ([a_benchmark(steps=lambda: [OWN, SEARCH, CLEAN], labels="a")], Repeats(), [BOOT + 13]),
        ([a_benchmark(steps=undeclared, labels="a")], Repeats(), [BOOT + 1]),  # the runner's matter
    ],
)
def test_a_session_is_expected_to_take(benchmarks, repeats, seconds):
    forecast = Forecast(cases(*benchmarks), None, "quick", repeats)
    assert [forecast.case_s(number) for number in range(len(seconds))] == pytest.approx(seconds)
    assert forecast.rest_s(1) == pytest.approx(sum(seconds[1:]))


def test_what_took_longer_makes_the_rest_longer():
    forecast = Forecast(cases(a_benchmark()), None, "quick", Repeats())
    before = forecast.case_s(1)
    forecast.learn(0, 2 * (forecast.case_s(0) - forecast.boot_s) + forecast.boot_s)
    assert forecast.case_s(1) == pytest.approx(2 * before)
    forecast.learn(1, 10_000)
    assert forecast.case_s(1) < 10 * before


def test_a_case_whose_measuring_is_anothers_is_known():
    plan = cases(a_benchmark(steps=lambda: [OWN, ALL], labels="abc"), a_benchmark(labels="d"))
    assert Forecast(plan, None, "quick", Repeats()).shared == [False, True, True, False]


def test_a_log_gets_a_line_now_and_then():
    done = subprocess.run([sys.executable, "-c", TICKING], capture_output=True, text=True, check=True)
    first, second, *_, last = done.stdout.splitlines()
    assert first.startswith("0:0a of 0:09: booting Linux")
    assert second.startswith("0:0b")
    assert last == "after"
    assert "\r" not in done.stdout


def test_a_terminals_line_is_written_over_and_cleared():
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 60))
    with subprocess.Popen([sys.executable, "-c", TICKING], stdout=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 4096):
                said += piece
        except OSError:
            pass  # the other end is closed
        assert process.wait() == 0
    os.close(ours)
    before, after = said.split(b"after")
    assert before.startswith(b"\r\x1b[K0:0a")
    assert before.endswith(b"\r\x1b[K")
    assert b"\n" not in before
    assert max(map(len, before.split(b"\r\x1b[K"))) < 60
    assert after.strip() == b""
