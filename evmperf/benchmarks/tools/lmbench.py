"""LMBench 3: command lines and parsers of its programs, which print decimal sizes and megabytes to standard
error, and end with status 0 even without a result.
"""

import re

from evmperf.benchmarks.tools._checks import above_zero, refuse
from evmperf.model.errors import RefusedOutput

TEXT_FILE = "lmbench.txt"

_HASTY = "export ENOUGH=100000 TIMING_O=0 LOOP_O=0"
"""Measure for 0.1 s an operation and without calibration, which takes half a minute on a slow board."""

_LABELLED = re.compile(
    r"([A-Za-z][^:]*): (?=\d+\.\d{4} mic|\d+\.\d\d [nM])"
    r"(\d+\.\d+) (microseconds|nanoseconds|MB/sec)"
)
_OF_SIZE = re.compile(
    r"(0\.\d{6}|[1-9]\d*\.\d\d) (\d+\.\d\d|0\.\d{6})"  # MB and MB/s
    r"|(\d+\.\d{6}) (\d\.\d{3}|[1-9]\d+)"  # MB and microseconds
)
_TWO_NUMBERS = re.compile(r"[\d.]+ +[\d.]+")
_SWITCH = re.compile(r"(\d+) (\d+\.\d\d)")
_LOADS = re.compile(r"(\d+\.\d{5}) (\d+\.\d{3})")
_FILES = re.compile(r"(\d+)k\t(\d+)\t(\d+)\t(\d+)")
_FILE_SIZES = ("0", "1", "4", "10")


def command(published: str, *, hasty: bool) -> str:
    """Shell text that runs a program as the guides do, or `hasty` once for 0.1 s, into TEXT_FILE."""
    program, _, arguments = published.partition(" ")
    if hasty:
        arguments = f"-N 1 {re.sub(r'-N [0-9]+ ', '', arguments)}"
    call = f'{f"{program} {arguments}".strip()} >"$OUT/{TEXT_FILE}" 2>&1'
    if published.startswith("lat_sig prot"):
        # It takes one of its times off another and, when noise makes the difference negative, prints nothing.
        call = (
            f"( for n in 1 2 3 4 5 6; do {call} || exit 1; "
            f'[ ! -s "$OUT/{TEXT_FILE}" ] || break; '
            f'echo "attempt $n printed nothing" >>"$OUT/attempts.txt"; done )'
        )
    return f"{_HASTY}; {call}" if hasty else call


def labelled(text: str, label: str, unit: str, lines: int = 1) -> float:
    """The value of `LABEL: VALUE UNIT`, one of exactly `lines` such lines; raises RefusedOutput."""
    matches = [_LABELLED.fullmatch(line) for line in _whole_lines(text)]
    refuse(
        len(matches) != lines or not all(matches), f"LMBench printed other output than {lines} results", text
    )
    values = {match[1]: (match[2], match[3]) for match in matches if match}
    refuse(label not in values, f"LMBench printed no {label!r}", text)
    value, printed_unit = values[label]
    refuse(printed_unit != unit, f"LMBench printed {printed_unit}, not {unit}", text)
    return above_zero(value, "LMBench", text)


def value_of_size(text: str, size: float) -> float:
    """The value of the last line, the only `SIZE VALUE` (megabytes; MB/s, of lat_mmap microseconds)."""
    *before, last = _whole_lines(text) or [""]
    match = _OF_SIZE.fullmatch(last)
    if not match or any(map(_TWO_NUMBERS.fullmatch, before)):
        raise RefusedOutput("LMBench printed other output than one size and its value", text)
    printed, value = filter(None, match.groups())
    refuse(float(printed) != size, f"LMBench measured {printed} MB, not {size:g} MB", text)
    return above_zero(value, "LMBench", text)


def context_switch(text: str, kilobytes: int, processes: int) -> float:
    """Microseconds of one context switch between processes with so much data (lat_ctx)."""
    lines = [line for line in _whole_lines(text) if line]
    head = re.fullmatch(rf'"size={kilobytes}k ovr=\d+\.\d\d', lines[0]) if lines else None
    match = _SWITCH.fullmatch(lines[1]) if len(lines) == 2 else None
    if not head or not match or match[1] != str(processes):
        reason = f"LMBench printed other output than {processes} processes of {kilobytes} KiB"
        raise RefusedOutput(reason, text)
    return above_zero(match[2], "LMBench", text)


def memory_latency(text: str, megabytes: str, last: str) -> float:
    """Nanoseconds of a load from an array (lat_mem_rd); `last` is the size that must end the table."""
    lines = [line for line in _whole_lines(text) if line]
    rows = [_LOADS.fullmatch(line) for line in lines[1:]]
    table = lines and re.fullmatch(r'"stride=\d+', lines[0]) and all(rows)
    refuse(not table, "LMBench printed other output than a table of latencies", text)
    values = {row[1]: row[2] for row in rows if row}
    sizes = [float(size) for size in values]
    rises = rows and list(values)[-1] == last and len(values) == len(rows) and sizes == sorted(sizes)
    refuse(not rises, f"LMBench's table does not rise to {last} MB", text)
    refuse(megabytes not in values, f"LMBench's table has no row of {megabytes} MB", text)
    return above_zero(values[megabytes], "LMBench", text)


def files(text: str, kilobytes: int) -> float:
    """How many files of that size lat_fs made and deleted in its time (its second column)."""
    rows = [_FILES.fullmatch(line) for line in _whole_lines(text)]
    sizes = tuple(row[1] if row else None for row in rows)
    refuse(sizes != _FILE_SIZES, "LMBench printed other output than a line for each size", text)
    values = {int(row[1]): row[2] for row in rows if row}
    refuse(kilobytes not in values, f"LMBench made no files of {kilobytes} KiB", text)
    return above_zero(values[kilobytes], "LMBench", text)


def _whole_lines(text: str) -> list[str]:
    """The lines; raises RefusedOutput if the last one has no end, as a digit may be missing."""
    refuse(not text.endswith("\n"), "LMBench's output is cut", text)
    return text.splitlines()
