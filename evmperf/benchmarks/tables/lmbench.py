"""LMBench 3: latencies and bandwidths of processor, memory and kernel. evmperf measures what rows say, unlike
the guides in `bw_mem` of 1 to 8 MB (published as the mean of two operations) and
`latency_for_1.00_mb_block_size` (as the half); the `lat_fs` rows are numbers of files.

Its programs print decimal sizes and megabytes to standard error, and end with status 0 even without a result.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.families.processor import perf
from evmperf.benchmarks.step import CleanUp, Measure, Plan, Prepare, Step, reading_of
from evmperf.benchmarks.tools._checks import above_zero, refuse
from evmperf.boards import yamlfile
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
_FOLDER = "/opt/evmperf-lmbench"
"""On the root file system, as where the guides' test suite ran."""
_FILE = "test1.txt"
_TEXT_FILE = "lmbench.txt"
_TCP_PORTS = {"lat_connect": 31237, "lat_tcp": 31234}
"""Where the servers of these programs listen."""

_MICROSECONDS = perf(Unit.MICROSECOND, Direction.LOWER, 1e-4, 1e7)
_NANOSECONDS = perf(Unit.NANOSECOND, Direction.LOWER, 0.01, 1e5)
_MEGABYTES = perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 0.1, 1e6)
_FILES = perf(Unit.FILES, Direction.HIGHER, 1, 1e7)

_DECLARED = yamlfile.own("benchmarks/tables/lmbench.yaml")

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
_MADE = re.compile(r"(\d+)k\t(\d+)\t(\d+)\t(\d+)")
_FILE_SIZES = ("0", "1", "4", "10")


class _Row(NamedTuple):
    """One row: the command that the guides name, and its parser with what that takes beside the text."""

    command: str
    metric: Metric
    parser: Callable[..., float]
    arguments: tuple[str | float, ...]


def _rows() -> dict[str, _Row]:
    rows = {
        name: _Row(command, _MICROSECONDS, labelled, (label, "microseconds"))
        for name, (command, label) in _DECLARED["labelled"].items()
    }
    rows |= {name: _Row(read, _MEGABYTES, value_of_size, (1,)) for name, read in _DECLARED["reads"].items()}
    rows["bw_pipe"] = _Row("bw_pipe", _MEGABYTES, labelled, ("Pipe bandwidth", "MB/sec"))
    rows["bw_unix"] = _Row("bw_unix", _MEGABYTES, labelled, ("AF_UNIX sock stream bandwidth", "MB/sec"))
    rows["lat_mmap-1m"] = _Row(f"lat_mmap 1M {_FILE}", _MICROSECONDS, value_of_size, (1,))
    for operation in ("bcopy", "bzero", "cp", "fcp", "frd", "fwr", "rd", "rdwr", "wr"):
        for size in (1, 2, 4, 8, 16):
            row = _Row(f"bw_mem {size}M {operation}", _MEGABYTES, value_of_size, (size,))
            rows[f"bw_mem-{operation}-{size}mb"] = row
    for count in (2, 4):
        for size in (128, 256):
            row = _Row(f"lat_ctx -s {size}K -N 100 {count}", _MICROSECONDS, context_switch, (size, count))
            rows[f"lat_ctx-{count}-{size}k"] = row
    for size in (0, 1, 4, 10):
        rows[f"lat_fs-{size}k"] = _Row("lat_fs", _FILES, files, (size,))
    # LMBench prints an array's size in megabytes of 2^20 bytes; the label `50` stands for 512 bytes.
    arrays = {"50": 0.5, "31k": 32, "62k": 64, "125k": 128, "250k": 256, "500k": 512, "1000k": 1024}
    for array, kib in arrays.items():
        sizes = (f"{kib / 1024:.5f}", "1.00000")
        row = _Row("lat_mem_rd 1M 128", _NANOSECONDS, memory_latency, sizes)
        rows[f"lat_mem_rd-stride128-sz{array}"] = row
    for kind in ("int", "int64", "float", "double"):
        for name in ("add", "bit", "div", "mod", "mul") if "int" in kind else ("add", "div", "mul"):
            # LMBench's int64 addition calls itself uint64.
            printed = {"int": "integer", "int64": "uint64" if name == "add" else kind}.get(kind, kind)
            # lat_ops prints 18 lines, two of which the guides leave out.
            label = (f"{printed} {name}", "nanoseconds", 18)
            rows[f"lat_ops-{kind}-{name}"] = _Row("lat_ops", _NANOSECONDS, labelled, label)
    rows |= {alias: rows[name] for alias, name in _DECLARED["aliases"].items()}
    return dict(sorted(rows.items()))


def _steps(_: Board, case: Case, __: Plan) -> list[Step]:
    row, hasty = _ROWS[case.label], case.params["repetitions"] == "few"
    program = row.command.split()[0]
    command = _command(row.command, hasty=hasty)
    before, after = [], ""
    if _FILE in row.command:
        make = f"cd {_FOLDER} && dd if=/dev/urandom of={_FILE} bs=1M count=16"
        before = [Prepare("file", f"mkdir -p {_FOLDER} && {make}", 120, 1)]
        command = f"cd {_FOLDER} && {command}"
        after = f"rm -rf {_FOLDER}"
    elif program in _TCP_PORTS:
        port = f"{_TCP_PORTS[program]:04X}"
        command = _SHELL("with_server", program=program, command=command, port=port)
        after = f"{program} -S localhost || true"
    elif program == "lat_fs":
        # Its folder, if it was interrupted: tempnam(3) takes five letters of its prefix.
        after = "rm -rf /tmp/lat_f*"

    parse = reading_of("perf", _TEXT_FILE, row.parser, *row.arguments)
    times_s = (60, 1) if hasty else (900, 30)
    measure = Measure("measure", command, *times_s, parse=parse, shared=row.command)
    clean_up = [CleanUp("clean-up", after, 30, 0.5)] if after else []
    return [*before, measure, *clean_up]


def _command(published: str, *, hasty: bool) -> str:
    """Shell text that runs a program as the guides do, or `hasty` once for 0.1 s, into _TEXT_FILE."""
    program, _, arguments = published.partition(" ")
    if hasty:
        arguments = f"-N 1 {re.sub(r'-N [0-9]+ ', '', arguments)}"
    call = f'{f"{program} {arguments}".strip()} >"$OUT/{_TEXT_FILE}" 2>&1'
    if published.startswith("lat_sig prot"):
        # It takes one of its times off another and, when noise makes the difference negative, prints nothing.
        call = (
            f"( for n in 1 2 3 4 5 6; do {call} || exit 1; "
            f'[ ! -s "$OUT/{_TEXT_FILE}" ] || break; '
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
    rows = [_MADE.fullmatch(line) for line in _whole_lines(text)]
    sizes = tuple(row[1] if row else None for row in rows)
    refuse(sizes != _FILE_SIZES, "LMBench printed other output than a line for each size", text)
    values = {int(row[1]): row[2] for row in rows if row}
    refuse(kilobytes not in values, f"LMBench made no files of {kilobytes} KiB", text)
    return above_zero(values[kilobytes], "LMBench", text)


def _whole_lines(text: str) -> list[str]:
    """The lines; raises RefusedOutput if the last one has no end, as a digit may be missing."""
    refuse(not text.endswith("\n"), "LMBench's output is cut", text)
    return text.splitlines()


_ROWS = _rows()
_METRICS = {label: (row.metric,) for label, row in _ROWS.items()}

BENCHMARK = Benchmark(
    name="lmbench",
    driver="system",
    title="LMBench",
    section=("System Benchmarks", "LMBench"),
    metrics=(_MICROSECONDS,),  # of the first row; each has its own
    profiles=Profile.crossed({"benchmark": _ROWS}, {}, _METRICS, repetitions=("many", "few")),
    steps=_steps,
    # One for all: they come in one package.
    tools=("bw_mem",),
)
