"""LMBench: latencies and bandwidths of processor, memory and kernel. evmperf measures what rows say, unlike
the guides in `bw_mem` of 1 to 8 MB (published as the mean of two operations) and
`latency_for_1.00_mb_block_size` (as the half); the `lat_fs` rows are numbers of files.
"""

from collections.abc import Callable
from typing import NamedTuple

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.families.processor import perf
from evmperf.benchmarks.step import CleanUp, Measure, Plan, Prepare, Step, reading_of
from evmperf.benchmarks.tools import lmbench
from evmperf.boards import yamlfile
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
_FOLDER = "/opt/evmperf-lmbench"
"""On the root file system, as where the guides' test suite ran."""
_FILE = "test1.txt"
_TCP_PORTS = {"lat_connect": 31237, "lat_tcp": 31234}
"""Where the servers of these programs listen."""

_MICROSECONDS = perf(Unit.MICROSECOND, Direction.LOWER, 1e-4, 1e7)
_NANOSECONDS = perf(Unit.NANOSECOND, Direction.LOWER, 0.01, 1e5)
_MEGABYTES = perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 0.1, 1e6)
_FILES = perf(Unit.FILES, Direction.HIGHER, 1, 1e7)

_DECLARED = yamlfile.own("benchmarks/tables/lmbench.yaml")


class _Row(NamedTuple):
    """One row: the command that the guides name, and its parser with what that takes beside the text."""

    command: str
    metric: Metric
    parser: Callable[..., float]
    arguments: tuple[str | float, ...]


def _rows() -> dict[str, _Row]:
    labelled, of_size = lmbench.labelled, lmbench.value_of_size
    rows = {
        name: _Row(command, _MICROSECONDS, labelled, (label, "microseconds"))
        for name, (command, label) in _DECLARED["labelled"].items()
    }
    rows |= {name: _Row(read, _MEGABYTES, of_size, (1,)) for name, read in _DECLARED["reads"].items()}
    rows["bw_pipe"] = _Row("bw_pipe", _MEGABYTES, labelled, ("Pipe bandwidth", "MB/sec"))
    rows["bw_unix"] = _Row("bw_unix", _MEGABYTES, labelled, ("AF_UNIX sock stream bandwidth", "MB/sec"))
    rows["lat_mmap-1m"] = _Row(f"lat_mmap 1M {_FILE}", _MICROSECONDS, of_size, (1,))
    for operation in ("bcopy", "bzero", "cp", "fcp", "frd", "fwr", "rd", "rdwr", "wr"):
        for size in (1, 2, 4, 8, 16):
            row = _Row(f"bw_mem {size}M {operation}", _MEGABYTES, of_size, (size,))
            rows[f"bw_mem-{operation}-{size}mb"] = row
    for count in (2, 4):
        for size in (128, 256):
            row = _Row(
                f"lat_ctx -s {size}K -N 100 {count}", _MICROSECONDS, lmbench.context_switch, (size, count)
            )
            rows[f"lat_ctx-{count}-{size}k"] = row
    for size in (0, 1, 4, 10):
        rows[f"lat_fs-{size}k"] = _Row("lat_fs", _FILES, lmbench.files, (size,))
    # LMBench prints an array's size in megabytes of 2^20 bytes; the label `50` stands for 512 bytes.
    arrays = {"50": 0.5, "31k": 32, "62k": 64, "125k": 128, "250k": 256, "500k": 512, "1000k": 1024}
    for array, kib in arrays.items():
        sizes = (f"{kib / 1024:.5f}", "1.00000")
        row = _Row("lat_mem_rd 1M 128", _NANOSECONDS, lmbench.memory_latency, sizes)
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


_ROWS = _rows()


def _steps(_: Board, case: Case, __: Plan) -> list[Step]:
    row, hasty = _ROWS[case.label], case.params["repetitions"] == "few"
    program = row.command.split()[0]
    command = lmbench.command(row.command, hasty=hasty)
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

    parse = reading_of("perf", lmbench.TEXT_FILE, row.parser, *row.arguments)
    times_s = (60, 1) if hasty else (900, 30)
    measure = Measure("measure", command, *times_s, parse=parse, shared=row.command)
    clean_up = [CleanUp("clean-up", after, 30, 0.5)] if after else []
    return [*before, measure, *clean_up]


_METRICS = {label: (row.metric,) for label, row in _ROWS.items()}

BENCHMARK = Benchmark(
    name="lmbench",
    driver="system",
    title="LMBench",
    section=("System Benchmarks", "LMBench"),
    metrics=(_MICROSECONDS,),  # of the first row; each has its own
    profiles=Profile.both("benchmark", _ROWS, (), _METRICS, repetitions=("many", "few")),
    steps=_steps,
    # One for all: they come in one package.
    tools=("bw_mem",),
)
