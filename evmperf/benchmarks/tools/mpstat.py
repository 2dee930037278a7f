"""CPU load by mpstat (sysstat) and by /proc/stat: 100 - %iowait - %idle over all CPUs, as in the guides
(inventory)."""

import json
import re
from decimal import Decimal

from evmperf.benchmarks.tools._checks import refuse, refusing

STAT_BEFORE = "stat.before"
STAT_AFTER = "stat.after"

_ALL = ("all", "-1")
"""mpstat's names of all CPUs together; `-1` is sysstat 12.0's."""
_COLUMNS = ("usr", "nice", "sys", "iowait", "irq", "soft", "steal", "guest", "gnice", "idle")
_HALF_CENT = 0.005
"""Rounding error of a column with two decimals, in percent."""
_CPU_LINE = re.compile(r"cpu(\d*) +((?:\d+ ){9}\d+)")
_TICKS_APART = 2
"""Ticks per CPU between the kernel's counts of all CPUs and of single CPUs."""


def command(window_s: int, file: str) -> str:
    """Shell text that watches all CPUs for `window_s` seconds, result into `$OUT/FILE`."""
    return f'mpstat -P ALL -o JSON {window_s} 1 > "$OUT/{file}"'


def snapshot(name: str) -> str:
    """Shell text that writes the kernel's counters, the sum and each CPU's, to `$OUT/NAME`."""
    return f'grep ^cpu /proc/stat > "$OUT/{name}"'


def around(command: str) -> str:
    """Shell text that runs `command` between two snapshots, and ends with its exit status."""
    return f"{snapshot(STAT_BEFORE)}; {command}; r=$?; {snapshot(STAT_AFTER)}; exit $r"


def load(text: str) -> float:
    """CPU load in percent from mpstat's JSON of one interval; raises RefusedOutput for other sums."""
    with refusing("mpstat's output is not the JSON expected", text):
        hosts = json.loads(text, parse_float=Decimal)["sysstat"]["hosts"]
        rows = [row for s in hosts[0]["statistics"] for row in s["cpu-load"] if row["cpu"] in _ALL]
        columns = [[row[name] for name in _COLUMNS] for row in rows]
    one = len(rows) == len(hosts) == 1
    refuse(not one, f"mpstat's output has {len(rows)} intervals instead of one", text)
    percentages = all(
        isinstance(value, Decimal) and value.as_tuple().exponent == -2 and 0 <= value <= 100
        for value in columns[0]
    )
    refuse(not percentages, "mpstat's columns are not percentages with two decimals", text)
    whole = float(sum(columns[0]))
    off = abs(whole - 100) > _HALF_CENT * len(_COLUMNS) + 1e-9
    refuse(off, f"mpstat's columns add up to {whole:.2f} %, not 100 %", text)
    return _percent(float(rows[0]["idle"]), float(rows[0]["iowait"]), 100.0, text)


def stat_load(before: str, after: str) -> float:
    """CPU load in percent between two looks at /proc/stat's `cpu` lines (proc(5), ticks; guest time is in
    user and nice); raises RefusedOutput unless the CPUs add up to the first line.
    """
    raw = before + after
    first, second = _ticks(before), _ticks(after)
    refuse(list(first) != list(second), "/proc/stat has other CPUs than before", raw)
    spent_by = {cpu: [b - a for a, b in zip(first[cpu], second[cpu], strict=True)] for cpu in first}
    spent = spent_by.pop("")
    apart = 2 * _TICKS_APART * len(spent_by)
    for ticks, parts in zip(spent, zip(*spent_by.values(), strict=True), strict=True):
        off = abs(ticks - sum(parts)) > apart
        refuse(off, "/proc/stat's lines of the CPUs do not add up to that of all", raw)
    backwards = min(*spent[:3], *spent[5:]) < 0 or sum(spent) <= 0
    refuse(backwards, "/proc/stat's counters did not go forward", raw)
    return _percent(spent[3], spent[4], float(sum(spent)), raw)


def _percent(idle: float, iowait: float, whole: float, raw: str) -> float:
    value = 100.0 * (whole - idle - iowait) / whole
    # mpstat rounds each column to 2 decimals, so the sum may miss 100 by a little.
    refuse(not -0.05 <= value <= 100.05, f"a CPU load of {value:.2f} % is impossible", raw)
    return min(max(value, 0.0), 100.0)


def _ticks(text: str) -> dict[str, list[int]]:
    """Ticks by CPU; "" is all of them."""
    lines = [_CPU_LINE.fullmatch(line) for line in text.splitlines()]
    ticks = {m.group(1): [int(f) for f in m.group(2).split()[:8]] for m in lines if m}
    numbers = [int(cpu) for cpu in ticks if cpu]
    complete = all(lines) and len(ticks) == len(lines) and text.endswith("\n")
    ordered = numbers and not next(iter(ticks)) and numbers == sorted(numbers)
    refuse(not complete or not ordered, "these are not the cpu lines of /proc/stat", text)
    return ticks
