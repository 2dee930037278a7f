"""Rows of the table, and what they were measured under."""

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_HEAD = ("what", "evmperf", "reference", "figure", "goal", "met")


@dataclass(frozen=True)
class Row:
    """One line of the table; `met` is yes, NO, or "" for a figure without a goal."""

    what: str
    evmperf: str = ""
    reference: str = ""
    figure: str = ""
    goal: str = ""
    met: str = ""


def ratio(what, ours, reference, goal):
    """Compare the medians of two series of seconds."""
    mine, theirs = statistics.median(ours), statistics.median(reference)
    return Row(
        f"{what}, n {len(ours)}",
        seconds(mine),
        seconds(theirs),
        f"{mine / theirs:.2f} x",
        f"<= {goal:g} x",
        met(mine / theirs, goal),
    )


@dataclass(frozen=True)
class Used:
    """What a process needed: seconds of time and of all cores, mebibytes at its largest."""

    wall_s: float
    cpu_s: float
    peak_mib: float


_LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
status = subprocess.call(sys.argv[2:], stdout=subprocess.DEVNULL)
wall_s = time.perf_counter() - began
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
used = [status, wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]
json.dump(used, open(sys.argv[1], "w"))
"""
"""A process's peak begins with the size of what started it, so a small one must."""


def used(command, good=(0,)):
    """Run a process and account for it alone; raises RuntimeError for an exit status not `good`."""
    with tempfile.NamedTemporaryFile(prefix="evmperf-used-") as told:
        subprocess.run([sys.executable, "-S", "-c", _LAUNCHER, told.name, *command], cwd=ROOT, check=True)
        status, wall_s, cpu_s, peak_mib = json.load(told)
    if status not in good:
        raise RuntimeError(f"{shlex.join(command)} ended with {status}")
    return Used(wall_s, cpu_s, peak_mib)


def usual(environment):
    """An environment as a user's: with Python's and pytest's caches of compiled modules."""
    unusual = ("PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in environment.items() if name not in unusual}


def met(value, limit):
    return "yes" if value <= limit else "NO"


def seconds(value):
    return f"{value * 1e3:.2f} ms" if value < 0.1 else f"{value:.3f} s"


def quantile(values, share):
    """The smallest value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def table(rows):
    lines = [_HEAD, *(astuple(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def conditions(load_before, took_s):
    """What the figures were measured under."""
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
    revision = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return (
        f"{time.strftime('%Y-%m-%d %H:%M:%S %Z')}, took {took_s:.0f} s, {os.cpu_count()} cpus, "
        f"Python {platform.python_version()}, Linux {platform.release()}\n"
        f"load average {load_before} before, {load()} after (it counts our own work)\n"
        f"revision {revision}\n"
        f"command: python -m selftests.speed {shlex.join(sys.argv[1:])}".rstrip()
    )
