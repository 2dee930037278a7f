"""A board that forwards between two ports: its load, and proof that frames went through it. The window lies
within the tester's test if frames came at both ends as in its middle.
"""

import re

from evmperf.benchmarks.tools import mpstat
from evmperf.benchmarks.tools._checks import read_twice, refuse, twice, whole
from evmperf.model.places import STEP_FOLDER
from evmperf.model.shelltext import ShellTexts

TEXT_FILE = "frames.txt"
_STATE = f"{STEP_FOLDER}/forwarding"
_SHELL = ShellTexts(__file__)
_LINE = re.compile(r"(\d+\.\d\d) (\d+)\n" * 4)
_END_S = 0.3
"""Seconds of a look at either end of the window."""
_LEAST = 0.1
"""Part of the mean rate that either end must have: the rate of TCP varies, a test that is over has none."""


def watch(interface: str, settle_s: int, window_s: int) -> str:
    """Shell text that watches in the background what an interface receives, and the processors'
    load: after `settle_s` seconds for `window_s`, with a look of _END_S at either end.
    """
    looks = {"before": mpstat.snapshot(mpstat.STAT_BEFORE), "after": mpstat.snapshot(mpstat.STAT_AFTER)}
    about = {"interface": interface, "state": _STATE, "text_file": TEXT_FILE, **looks}
    within_s = f"{window_s - 2 * _END_S:g}"
    return _SHELL("watch", **about, settle_s=settle_s, end_s=_END_S, within_s=within_s)


def collect() -> str:
    """Shell text that leaves what `watch` saw as outputs; repeated, the same."""
    about = {"stat_before": mpstat.STAT_BEFORE, "stat_after": mpstat.STAT_AFTER, "state": _STATE}
    return _SHELL("collect", **about, frames=twice(f"cat {TEXT_FILE}", TEXT_FILE))


def received_mbit(text: str) -> float:
    """Mbit/s (10^6) received in the window; raises RefusedOutput for a window outside the test."""
    match = whole(_LINE, read_twice(text), "the watch of the forwarding board is not whole", text)
    looks = list(zip(map(float, match.groups()[::2]), map(int, match.groups()[1::2]), strict=True))

    def rate(first: int, last: int) -> float:
        (begin, before), (end, after) = looks[first], looks[last]
        backwards = end <= begin or after < before
        refuse(backwards, "the counters of the forwarding board did not go forward", text)
        return (after - before) * 8 / 1e6 / (end - begin)

    mean = rate(0, 3)
    unsteady = mean <= 0 or min(rate(0, 1), rate(2, 3)) < _LEAST * mean
    refuse(unsteady, "the board was not forwarding during its whole window", text)
    return mean
