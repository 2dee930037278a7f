"""A lab of 32 boards on this machine: stamps, a whole night, how fast a lost board is noticed."""

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from unittest import mock

import yaml

from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import Wanted
from selftests.instruments.speed.figures import ROOT, Row, met, quantile, seconds, usual
from selftests.support.placelab import PlaceLab
from selftests.support.talking import MS, TalkingBoard, delays_ms

BOARDS = 32
_STREAM_S = 5
_KICKS = 10
_STAMP_GOAL_MS, _WALL_GOAL, _MEMORY_GOAL_GB, _KICK_GOAL_S = 2.0, 1.1, 3.0, 0.2
_NIGHT_S = 3600.0
"""What the cost of a night beside one board is compared with: an hour of measuring."""


def stamps():
    """How far off the stamps of 32 full consoles are: each says 115 bytes every 10 ms, all of 115200 baud."""
    boards = TalkingBoard("raw", 100 * _STREAM_S, 115, 10 * MS, count=BOARDS)
    with contextlib.closing(boards), ThreadPoolExecutor(BOARDS) as pool:
        boards.go()
        heard = list(pool.map(lambda number: boards.frames(120, number), range(BOARDS)))
        errors = [late for frames in heard for late in delays_ms(frames, boards.said())]
    p99 = quantile(errors, 0.99)
    return [
        Row(
            f"stamps of {BOARDS} full consoles, n {len(errors)}",
            f"p50 {quantile(errors, 0.5):.3f}, max {max(errors):.3f} ms",
            "the sender's clock",
            f"p99 {p99:.3f} ms",
            f"<= {_STAMP_GOAL_MS:g} ms",
            met(p99, _STAMP_GOAL_MS),
        )
    ]


def night():
    """`evmperf night` on 32 scripted boards, against one; they boot in no time, so that what is
    measured is evmperf's own cost.
    """
    with _lab(BOARDS) as lab:
        alone, _ = _measure(lab, 1)
        together, peak_gb = _measure(lab, BOARDS)
    more = together - alone
    share = (_NIGHT_S + more) / _NIGHT_S
    return [
        Row(
            f"night of {BOARDS} boards, n 1",
            seconds(together),
            f"one board {seconds(alone)}",
            f"{seconds(more)} more: {share:.3f} x in an hour",
            f"<= {_WALL_GOAL:g} x",
            met(share, _WALL_GOAL),
        ),
        Row(
            "  memory at the peak (PSS of night and sessions)",
            f"{peak_gb:.2f} GB",
            "",
            "",
            f"<= {_MEMORY_GOAL_GB:g} GB",
            met(peak_gb, _MEMORY_GOAL_GB),
        ),
    ]


def kicks():
    """From the request that takes a place away to the moment from which no byte is sent."""
    delays: list[float] = []
    lost: SimpleQueue[float] = SimpleQueue()
    with _lab(1) as lab, mock.patch.dict(os.environ, lab.environment):
        (place,) = lab.boards
        for number in range(_KICKS):
            claim = Claim.take(Wanted(place, lab.address), f"run-{number}")
            claim.on_lost = lambda _: lost.put(time.monotonic())
            asked = lab.kick(place, f"user{number}")
            delays.append(lost.get(timeout=10) - asked)
            claim.close()
            lab.client(place, "release", user=f"user{number}")
    return [
        Row(
            f"kick to silence, n {len(delays)}",
            f"median {seconds(statistics.median(delays))}",
            "",
            f"worst {seconds(max(delays))}",
            f"<= {_KICK_GOAL_S:g} s",
            met(max(delays), _KICK_GOAL_S),
        )
    ]


@contextlib.contextmanager
def _lab(count):
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        lab = PlaceLab(Path(folder), {f"fake-{n}": {"board": "fake"} for n in range(count)})
        lab.environment = usual(lab.environment)
        try:
            yield lab
        finally:
            lab.close()


def _measure(lab, count):
    """Wall in seconds and peak memory in GB of a night on so many boards."""
    file = lab.board_file(lab.folder / "scripted.yaml")
    jobs = [
        {"board": str(file), "place": place, "benchmarks": "default_rootfs"}
        for place in list(lab.boards)[:count]
    ]
    plan = lab.folder / f"plan{count}.yaml"
    plan.write_text(yaml.safe_dump({"boards": jobs, "stagger": "0s", "guide": False}))
    words = [sys.executable, "-m", "evmperf.commands.cli.main", "night", str(plan)]
    words += ["--results", str(lab.folder / f"results{count}")]
    began, peak = time.monotonic(), 0.0
    with (lab.folder / f"night{count}.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=ROOT, env=lab.environment, stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, _memory_gb(str(lab.folder)))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.0)
    wall = time.monotonic() - began
    # Figures of such boards may be worse by chance, and stamps too late on a loaded machine.
    if process.returncode not in (0, 1):
        raise RuntimeError((lab.folder / f"night{count}.log").read_text()[-2000:])
    return wall, peak


def _memory_gb(folder):
    """PSS of all processes that have this lab's locks in their environment, but not of its own servers."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"EVMPERF_LOCKS={folder}".encode() not in (process / "environ").read_bytes():
                continue
            text = (process / "smaps_rollup").read_text()
            total += int(re.search(r"^Pss: +(\d+) kB", text, re.MULTILINE)[1])
    return total / 1e6
