"""What a process does with the signals that end it."""

import signal
import subprocess
import sys

import pytest

from evmperf.measure import signals
from evmperf.measure.signals import Signals, leave


@pytest.fixture(autouse=True)
def _sigint_is_heard():
    """A shell starts its background jobs with SIGINT ignored, and what is ignored stays so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_is_ctrl_c_and_says_its_name(number):
    told = Signals()
    with told.watching(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert (told.by, told.hurried) == (number.name, False)


def test_what_is_held_is_done_and_what_may_be_left_out_is_not():
    told, done = Signals(), []
    with told.watching(), told.held():
        signal.raise_signal(signal.SIGTERM)
        done.append("board off")
        with told.skippable():
            signal.raise_signal(signal.SIGTERM)
            done.append("sent")
        with told.skippable():
            done.append("report")
        signal.raise_signal(signal.SIGINT)
        done.append("saved")
    assert done == ["board off", "report", "saved"]
    assert (told.by, told.hurried) == ("SIGTERM", True)


def test_what_is_unwound_is_hurried_by_a_second_signal():
    told = Signals()
    with told.watching():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert told.hurried


def test_an_ignored_signal_stays_ignored_and_all_is_as_before_afterwards():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        handlers = [signal.getsignal(number) for number in signals.SIGNALS]
        with Signals().watching():
            signal.raise_signal(signal.SIGHUP)
        assert [signal.getsignal(number) for number in signals.SIGNALS] == handlers
    finally:
        signal.signal(signal.SIGHUP, before)


SLOW = """
import signal, sys, time
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
print("ready", flush=True)
while len(heard) < int(sys.argv[1]): time.sleep(0.01)
"""


@pytest.mark.parametrize(("signals", "status"), [(1, 0), (2, -signal.SIGKILL)])
def test_who_leaves_waits_for_the_other_and_not_for_ever(signals, status):
    words = [sys.executable, "-c", SLOW, str(signals)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        leave(process, 30 if status == 0 else 0.3)
        assert process.returncode == status
