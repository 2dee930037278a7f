"""CPU load: sysstat's mpstat (JSON output), and the kernel's own counters in /proc/stat.

Load is 100 - %iowait - %idle over all CPUs, as the guides' tables have it (inventory, evidence L).
"""

from __future__ import annotations

import json

from evmperf.model.errors import RefusedOutput

JSON_FILE = "mpstat.json"
STAT_BEFORE = "stat.before"
STAT_AFTER = "stat.after"


def command(window_s: int) -> str:
    """Shell text that watches all CPUs for `window_s` seconds, result into `$OUT/mpstat.json`."""
    return f'mpstat -P ALL -o JSON {window_s} 1 > "$OUT/{JSON_FILE}"'


def snapshot(name: str) -> str:
    """Shell text that keeps the kernel's counters of now as `$OUT/NAME`."""
    return f'head -n 1 /proc/stat > "$OUT/{name}"'


def around(command: str) -> str:
    """Shell text that runs `command` between two snapshots, and ends with its exit status."""
    return f"{snapshot(STAT_BEFORE)}; {command}; r=$?; {snapshot(STAT_AFTER)}; exit $r"


def load(text: str) -> float:
    """CPU load in percent over all CPUs from mpstat's JSON with exactly one interval.

    Raises RefusedOutput for anything else.
    """
    try:
        hosts = json.loads(text)["sysstat"]["hosts"]
        rows = [row for s in hosts[0]["statistics"] for row in s["cpu-load"] if row["cpu"] == "all"]
        idle, iowait = [row["idle"] for row in rows], [row["iowait"] for row in rows]
    except (ValueError, KeyError, IndexError, TypeError):
        raise RefusedOutput("mpstat's output is not the JSON it should be", text) from None
    if len(rows) != 1 or len(hosts) != 1:
        raise RefusedOutput(f"mpstat's output has {len(rows)} intervals instead of one", text)
    return _percent(idle[0], iowait[0], 100.0, text)


def stat_load(before: str, after: str) -> float:
    """CPU load in percent between two `cpu` lines of /proc/stat (proc(5), in clock ticks).

    guest and guest_nice are part of user and nice already and are not counted twice.
    """
    first, second = _ticks(before), _ticks(after)
    spent = [b - a for a, b in zip(first, second, strict=True)]
    if any(ticks < 0 for ticks in (*spent[:3], *spent[5:])) or sum(spent) <= 0:
        raise RefusedOutput("/proc/stat's counters did not go forward", before + after)
    return _percent(spent[3], spent[4], float(sum(spent)), before + after)


def _percent(idle: object, iowait: object, whole: float, raw: str) -> float:
    if not isinstance(idle, int | float) or not isinstance(iowait, int | float):
        raise RefusedOutput("idle and iowait are not numbers", raw)
    value = 100.0 * (whole - idle - iowait) / whole
    # mpstat rounds each column to 2 decimals, so the sum may miss 100 by a little.
    if not -0.05 <= value <= 100.05:
        raise RefusedOutput(f"a CPU load of {value:.2f} % cannot be", raw)
    return min(max(value, 0.0), 100.0)


def _ticks(line: str) -> list[int]:
    fields = line.split()
    if len(fields) < 9 or fields[0] != "cpu" or not all(f.isdigit() for f in fields[1:]):
        raise RefusedOutput("this is not the cpu line of /proc/stat", line)
    return [int(field) for field in fields[1:9]]
