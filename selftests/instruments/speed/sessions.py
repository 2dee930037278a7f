"""Whole calls of pytest and of the command line, as processes."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evmperf.measure.runs import spool
from evmperf.model.records import BootRecord
from evmperf.model.results import Result, SpoolRecord
from selftests.instruments.speed.boards import virtual_board
from selftests.instruments.speed.figures import ROOT, Row, met, python, ratio, seconds, usual
from selftests.instruments.speed.reference import seconds as timed

_COLLECTIONS = 10
_HELPS = 20
_TESTS = """\
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_case(target, number):
    pass
"""
_ENV = """\
targets:
  main:
    features: [boot, emmc]
    resources:
      NetworkSerialPort: {host: 127.0.0.1, port: 7001, protocol: raw}
      NetworkPowerPort: {model: rest, host: "http://127.0.0.1:7002/power/{index}", index: "0"}
    drivers:
      NetworkPowerDriver: {delay: 0.0}
      SerialDriver: {}
      UBootDriver: {prompt: "=> ", autoboot: "stop autoboot"}
      ShellDriver: {prompt: "root@[^:]+:[^ ]*# ", login_prompt: "login: ", username: root}
      UBootStrategy: {}
"""


def overhead() -> list[Row]:
    """`pytest -k emmc` against the tools' own time and one boot to each prompt."""
    with virtual_board() as board:
        results = board.folder / "results"
        command = [sys.executable, "-m", "pytest", "--lg-env", str(board.env_file)]
        command += ["-k", "emmc", "--profile", "quick", f"--results={results}"]
        began_ns, began = time.time_ns(), time.perf_counter()
        ended = _run(command, ROOT)
        wall = time.perf_counter() - began
        found = list(results.glob("*/results.jsonl"))
        if ended.returncode or not found:
            raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout[-2000:]}")
        records = list(spool.read_records(found[0].parent))
        start_up = timed(lambda: _call([*command, "--collect-only"], ROOT))
    return _account(wall, began_ns, records, start_up)


def _account(wall: float, began_ns: int, records: list[SpoolRecord], start_up: float) -> list[Row]:
    results = [record for record in records if isinstance(record, Result)]
    boots = [record for record in records if isinstance(record, BootRecord)]
    tools = sum(result.tool_s for result in results)
    boot_s = {boot.goal: boot.duration_s for boot in boots}
    ideal = tools + sum(boot_s.values())
    cases = sum(result.duration_s for result in results)
    rows = [
        Row(
            f"overhead of pytest -k emmc, {len(results)} cases, n 1",
            seconds(wall),
            f"{seconds(ideal)}: tools {tools:.2f}, "
            + ", ".join(f"{goal} {value:.2f}" for goal, value in boot_s.items()),
            f"{wall / ideal:.3f} x",
            "<= 1.04 x",
            met(wall / ideal, 1.04),
        ),
        Row(f"  all boots: {len(boots)}", seconds(sum(b.duration_s for b in boots))),
        Row("  outside of cases (start, reports, power off)", seconds(wall - cases)),
        Row("    interpreter, imports, collection", seconds(start_up)),
        Row("    until the first case", seconds((results[0].started_ns - began_ns) / 1e9)),
    ]
    rests: dict[str, list[float]] = {}
    for result in results:
        rests.setdefault(result.benchmark, []).append(_rest(result, boots))
    everything = [rest for series in rests.values() for rest in series]
    rows.append(Row("  in cases beside tools and boots, sum", seconds(sum(everything))))
    rows.append(Row(f"    median, n {len(everything)}", seconds(statistics.median(everything))))
    for name, series in rests.items():
        busy = statistics.median(r.tool_s for r in results if r.benchmark == name)
        rows.append(
            Row(
                f"    {name}, median of {len(series)}",
                seconds(statistics.median(series)),
                f"tool {busy:.2f} s",
                f"first {seconds(series[0])}",
            )
        )
    return rows


def _rest(result: Result, boots: list[BootRecord]) -> float:
    """Seconds of a case that neither its tools nor a boot within it took."""
    begin, end = result.started_ns, result.started_ns + result.duration_s * 1e9
    within = sum(boot.duration_s for boot in boots if begin - 5e6 <= boot.started_ns < end)
    return result.duration_s - result.tool_s - within


def collect() -> list[Row]:
    """Collecting everything, against Labgrid's plugin alone with as many tests."""
    ours = [sys.executable, "-m", "pytest", "--lg-env", "env/virtual.yaml"]
    ours += ["--collect-only", "-q"]
    count = _call(ours, ROOT).count("::")
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_cases.py").write_text(_TESTS.format(count=count))
        (folder / "stock.yaml").write_text(_ENV)
        theirs = [sys.executable, "-m", "pytest", "--lg-env", "stock.yaml", "--collect-only", "-q"]
        for plugin in importlib.metadata.entry_points(group="pytest11"):
            if not plugin.value.startswith("labgrid"):
                theirs += ["-p", f"no:{plugin.name}"]
        if (there := _call(theirs, folder).count("::")) != count:
            raise RuntimeError(f"the reference collects {there} tests, not {count}")
        what = f"collect {count} tests vs Labgrid's plugin"
        return _in_turns(what, _COLLECTIONS, (ours, ROOT), (theirs, folder), goal=1.2)


def command_line() -> list[Row]:
    """`evmperf --help`, against a Python that loads argparse."""
    ours = [str(Path(sys.executable).with_name("evmperf")), "--help"]
    theirs = python("import argparse")
    what = "evmperf --help vs python -c 'import argparse'"
    return _in_turns(what, _HELPS, (ours, ROOT), (theirs, ROOT), goal=3)


def _in_turns(what: str, times: int, *calls: tuple[Sequence[str], Path], goal: float) -> list[Row]:
    """Our command in its folder against the reference's."""
    series: tuple[list[float], list[float]] = ([], [])
    for _ in range(times):
        for taken, call in zip(series, calls, strict=True):
            taken.append(timed(functools.partial(_call, *call)))
    return [ratio(what, *series, goal)]


def _call(command: Sequence[str], folder: Path) -> str:
    """Run what must go well; returns what it printed."""
    ended = _run(command, folder)
    ended.check_returncode()
    return ended.stdout


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=usual(os.environ), capture_output=True, text=True, check=False
    )
