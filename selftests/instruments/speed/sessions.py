"""What a session costs beside its tools and boots."""

import os
import statistics
import subprocess
import sys
import time

from evmperf.measure.runs import spool
from evmperf.model.records import BootRecord
from evmperf.model.results import Result
from selftests.instruments.speed.boards import virtual_board
from selftests.instruments.speed.figures import ROOT, Row, met, seconds, usual


def overhead():
    """`pytest -k emmc` against the tools' own time and one boot to each prompt."""
    with virtual_board() as board:
        results = board.folder / "results"
        command = [sys.executable, "-m", "pytest", "--lg-env", str(board.env_file)]
        command += ["-k", "emmc", "--profile", "quick", f"--results={results}"]
        began_ns, began = time.time_ns(), time.perf_counter()
        ended = _run(command)
        wall = time.perf_counter() - began
        found = list(results.glob("*/results.jsonl"))
        if ended.returncode or not found:
            raise RuntimeError(f"pytest ended with {ended.returncode}:\n{ended.stdout[-2000:]}")
        records = list(spool.read_records(found[0].parent))
        began = time.perf_counter()
        _run([*command, "--collect-only"]).check_returncode()
        start_up = time.perf_counter() - began
    return _account(wall, began_ns, records, start_up)


def _account(wall, began_ns, records, start_up):
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
    rests = [_rest(result, boots) for result in results]
    rows.append(Row("  in cases beside tools and boots, sum", seconds(sum(rests))))
    rows.append(Row(f"    median, n {len(rests)}", seconds(statistics.median(rests))))
    return rows


def _rest(result, boots):
    """Seconds of a case that neither its tools nor a boot within it took."""
    begin, end = result.started_ns, result.started_ns + result.duration_s * 1e9
    within = sum(boot.duration_s for boot in boots if begin - 5e6 <= boot.started_ns < end)
    return result.duration_s - result.tool_s - within


def _run(command):
    return subprocess.run(
        command, cwd=ROOT, env=usual(os.environ), capture_output=True, text=True, check=False
    )
