"""Programs that measure the processor and its memory: Dhrystone 2.1 (`runDhrystone`, Weicker's dhry_1.c),
Linpack and Whetstone (`runLinpack`, `runWhetstone`, of Netlib), NBench (`runNBench.sh`, Mayer's port of
BYTEmark 2), STREAM 5.10 (`stream_c`, McCalpin's), and evmperf's stand-ins for them
(virtual-evm/virtual/programs).

A figure is refused unless what the program prints beside it makes that figure.
"""

import re
from collections.abc import Callable

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Outputs, output
from evmperf.benchmarks.tools import gauge
from evmperf.benchmarks.tools._checks import above_zero, agree, only, over, read_twice, refuse, span, twice
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import KIBIBYTE, MEGABYTE, Unit

_DECLARED = declared(__file__)
_SHELL = ShellTexts(__file__)
_DHRYSTONES = "dhrystone_per_second"
_CLOCK_FILE = "cpufreq.txt"
_VAX_DHRYSTONES = 1757
"""Dhrystones a second of a VAX 11/780, which is 1 DMIPS."""
_CACHES_FILE = "caches.txt"
_CACHES = twice("cat /sys/devices/system/cpu/cpu*/cache/index*/size 2>/dev/null", _CACHES_FILE)
"""Shell text that puts the sizes of all caches beside what STREAM prints."""
_PREFIX = "evmperf-"
"""Of the names of stand-ins."""

_ONE_RATE = "{} printed no rate, or more than one, or was cut"
_CLOCK_TOLERANCE = 0.05
_KILOHERTZ = range(10_000, 10_000_001)
"""Plausible CPU clocks."""
_DHRYSTONES_LINE = re.compile(r"^Dhrystones per Second: +(\d+\.\d) *$", re.MULTILINE)
_MICROSECONDS = re.compile(r"^Microseconds for one run through Dhrystone: +(\d+\.\d) *$", re.MULTILINE)
_RUNS = re.compile(r"^Execution starts, (\d+) runs through Dhrystone$", re.MULTILINE)
_VARIABLE = re.compile(r"^ *(\S+): +(\S.*)\n +should be: +(\S.*)$", re.MULTILINE)
_CLOCK = re.compile(r"^[A-Za-z][^\d\n]* (\d+(?:\.\d+)?) ?MHz *$", re.MULTILINE)

_LINPACK = re.compile(
    r"^(Unrolled|Rolled) +(Single|Double) +Precision +(-?\d+) Kflops *; *\d+ Reps *\n", re.MULTILINE
)
_LINPACK_ROW = re.compile(r"^ +\d+\.\d\d +-?\d+\.\d\d +\d+\.\d\d +(\d+) +\d+\.\d\d +\d+\.\d\d$")
_LINPACK_TABLE = re.compile(r" *times for array with leading dimension of +\d+")

_WHETSTONE = re.compile(
    r"^Loops: (\d+), Iterations: (\d+), Duration: (\d+) sec\.\n"
    r"C Converted Double Precision Whetstones: (\d+\.\d) (MIPS|KIPS)\n",
    re.MULTILINE,
)

_PENTIUM_AND_K6 = {
    "NUMERIC SORT": (38.993, 118.73),
    "STRING SORT": (2.238, 14.459),
    "BITFIELD": (5829704.0, 27910000.0),
    "FP EMULATION": (2.084, 9.0314),
    "FOURIER": (879.278, 1565.5),
    "ASSIGNMENT": (0.2628, 1.0132),
    "IDEA": (65.382, 220.21),
    "HUFFMAN": (36.062, 112.93),
    "NEURAL NET": (0.6225, 1.4799),
    "LU DECOMPOSITION": (19.3031, 26.732),
}
"""The rates that NBench's two indices are over: of a Pentium 90 and an AMD K6/233 (nbench0.h)."""
_RATE = r" (?=.{15}  :)( *\d+(?:\.\d+)?(?:e\+\d\d)?)"
_INDEX = r"  (?=.{9}(?:  :|$))( *\d+\.\d\d)"
_NBENCH = re.compile(
    # The name is followed by the row, or by a warning that goes to lines of its own.
    rf"^(?P<name>[A-Z][A-Z ]{{19}}):(?P<warned>\n\*\* WARNING: [^\n]* is NOT 95 %[^\n]*\n"
    rf"\*\* WARNING: [^\n]*\n {{20}}:)?{_RATE}  :{_INDEX}  :{_INDEX}$",
    re.MULTILINE,
)

_STREAM = re.compile(
    r"^(?=.{23}  .{11}  .{11}  .{11}$)"
    r"(\w+): +(\d+\.\d) +\d+\.\d{6} +(\d+\.\d{6}) +\d+\.\d{6}$",
    re.MULTILINE,
)
_SIZE = re.compile(r"^Array size = (\d+) \(elements\), Offset = \d+ \(elements\)$", re.MULTILINE)
_ELEMENT = re.compile(r"^This system uses (\d+) bytes per array element\.$", re.MULTILINE)
_VALIDATED = re.compile(r"^Solution Validates: .* on all three arrays$", re.MULTILINE)
_CACHE = re.compile(r"^(\d+)K$", re.MULTILINE)
_ARRAYS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Number of arrays that each of STREAM's kernels accesses."""
_TIMES = 4
"""How many times as large as the last cache each array must be (stream.c, instructions 1)."""


def _program(
    name: str,
    read: Callable[[str, str, Board], float | Reading],
    *,
    figure: tuple[str, str] = ("", ""),
    finish: Callable[[float, str, str, Outputs], Reading] = lambda value, *_: Reading("perf", value),
    around: Callable[[str], str] = lambda call: call,
    variant: Callable[[Board], str] = lambda board: "",
) -> Benchmark:
    """A table of what one run of one program on CPU 0 prints; `read` gets its text, a row's label and
    the board.

    A stand-in has its own output, in which a row's figure has the row's name and unit or, for all, those of
    `figure`. `finish` makes a reading of that, the row's label, the text and all outputs; `around` puts shell
    text around the program's call. `variant` says which build of the program is measured.
    """
    file = f"{name}.txt"

    def measure(board: Board, case: Case) -> Measure:
        program, label = board.text("system", name), case.label
        call: str = program
        expect_s: float = 30
        is_standin = program.startswith(_PREFIX)
        if is_standin:
            # The guides' programs know themselves how long they measure.
            call = f"{program} {case.params['seconds']}"
            expect_s = len(_DECLARED[name]["profiles"]["full"].cases) * float(case.params["seconds"]) + 1

        def parse(outputs: Outputs) -> list[Reading]:
            text, (metric, *_) = output(outputs, file), case.metrics or _DECLARED[name]["metrics"]
            figure_name, unit = figure if figure[0] else (label, str(metric.unit))
            own = gauge.figure(text, program, figure_name, unit) if is_standin else None
            value = read(text, figure_name, board) if own is None else own
            return [value if isinstance(value, Reading) else finish(value, label, text, outputs)]

        call = around(f'{processor.pinned(call)} >"$OUT/{file}" 2>&1')
        return Measure("measure", call, 1800, expect_s, parse=parse, shared=name)

    return processor.governed(
        measure,
        lambda board: "; ".join(filter(None, (processor.PINNED, variant(board)))),
        **_DECLARED[name],
        board_tools=lambda board: (board.text("system", name),),
    )


def _watched(call: str) -> str:
    """Shell text that makes a call and notes cpufreq's clocks (kHz) under its load every second."""
    return _SHELL("dhrystone", command=call, clock_file=_CLOCK_FILE)


def _dhrystone(rate: float, label: str, text: str, outputs: Outputs) -> Reading:
    """By the clock that cpufreq confirms: guides publish 400 MHz for AM62L, and three times its DMIPS/MHz."""
    clock = dhrystone_clock(output(outputs, _CLOCK_FILE), text)
    per_mhz = rate / _VAX_DHRYSTONES / clock
    return Reading("perf", {"cpu_clock": clock, "dhrystone_per_mhz": per_mhz, _DHRYSTONES: rate}[label])


def _precision(board: Board) -> str:
    """Of Linpack: single by TI's definition, although the guides' text says double; a board may differ."""
    is_standin = board.options.system.linpack.startswith(_PREFIX)
    return "double" if is_standin else board.options.system.linpack_precision


def _nbench(text: str, label: str, _: Board) -> Reading:
    rate, certain = nbench(text, label.upper().replace("_", " "))
    return Reading("perf", rate, mark="" if certain else "not 95 % certain, says NBench")


def _stream(value: float, _: str, text: str, outputs: Outputs) -> Reading:
    # A stand-in says nothing of its arrays.
    caches = outputs.get(_CACHES_FILE, "") if "STREAM version" in text else ""
    return Reading("perf", value, variant=stream_cached(text, caches) if caches else "")


def dhrystone(text: str) -> float:
    """Dhrystones a second, of a run whose time and variables are right."""
    none = _ONE_RATE.format("Dhrystone")
    refuse(not text.endswith("\n"), none, text)
    (printed,), (each,) = only(_DHRYSTONES_LINE, text, none), only(_MICROSECONDS, text, none)
    rate = above_zero(printed, "Dhrystone", text)
    same = agree(over(1e6, span(printed)), span(each))
    refuse(not same, f"Dhrystone's {printed} runs a second do not take {each} microseconds each", text)
    runs = _RUNS.search(text)
    for name, value, should in _VARIABLE.findall(text):
        right = str(int(runs[1]) + 10) if runs and should == "Number_Of_Runs + 10" else should
        if not right.startswith("(implementation-dependent)") and value.strip() != right:
            raise RefusedOutput(f"Dhrystone computed {name} wrong: {value} instead of {right}", text)
    return rate


def dhrystone_clock(cpufreq: str, text: str) -> float:
    """The clock in MHz, the highest of cpufreq, else the program's; both must agree."""
    lines = cpufreq.splitlines()
    odd = cpufreq[-1:] not in ("", "\n") or not all(n.isdigit() and int(n) in _KILOHERTZ for n in lines)
    refuse(odd, "cpufreq's clocks are not numbers, or not those of a CPU", cpufreq)
    highest = max(map(int, lines), default=0) / 1000
    printed = {float(value) for value in _CLOCK.findall(text)}
    none = len(printed) > 1 or not (highest or printed)
    refuse(none, "neither cpufreq nor the program gives the clock", text)
    if highest and printed and abs(max(printed) / highest - 1) > _CLOCK_TOLERANCE:
        clocks = f"the program says {max(printed):g} MHz, cpufreq {highest:g} MHz"
        raise RefusedOutput(f"the clock is not certain: {clocks}", text)
    return highest or max(printed)


def linpack(text: str, precision: str = "single") -> float:
    """Thousands of operations a second (unrolled loops) in that precision: the lesser of the fourth rows of
    Linpack's two tables.
    """
    loops, made, printed = only(_LINPACK, text, _ONE_RATE.format("Linpack"))
    refuse(int(printed) <= 0, f"Linpack measured nothing: {printed} Kflops", text)
    refuse(loops != "Unrolled", "Linpack's loops are rolled, which is slower: build it with -DUNROLL", text)
    other = (
        f"Linpack is one of {made.lower()} precision, not {precision}: build it with "
        f"-D{precision[:1].upper()}P, or set options.system.linpack_precision in the board file"
    )
    refuse(made.lower() != precision, other, text)
    tables: list[list[int]] = []
    for line in text.splitlines():
        if _LINPACK_TABLE.fullmatch(line):
            tables.append([])
        elif tables and (row := _LINPACK_ROW.fullmatch(line)):
            tables[-1].append(int(row[1]))
    refuse([*map(len, tables)] != [4, 4], "Linpack's two tables do not have their four rows", text)
    fourth = min(rows[-1] for rows in tables)
    refuse(int(printed) != fourth, f"Linpack's {printed} Kflops do not match its tables", text)
    return float(printed)


def whetstone(text: str) -> float:
    """Millions of Whetstone instructions a second, which the program computes from whole seconds."""
    loops, iterations, seconds, rate, unit = only(_WHETSTONE, text, _ONE_RATE.format("Whetstone"))
    refuse(not int(seconds), "Whetstone took less than a second", text)
    scale = {"KIPS": 1, "MIPS": 1000}[unit]
    computed = int(loops) * int(iterations) * 100 / int(seconds) / scale
    same = agree((computed, computed), span(rate))
    refuse(not same, "Whetstone's rate is not that of its loops and whole seconds", text)
    return above_zero(rate, "Whetstone", text) * scale / 1000


def nbench(text: str, kernel: str) -> tuple[float, bool]:
    """The rate of a kernel (in capitals), and whether NBench is 95 % certain of it."""
    matches = [match.groups() for match in _NBENCH.finditer(text)]
    rows = {name.strip(): [word and word.strip() for word in row] for name, *row in matches}
    ten = tuple(rows) == tuple(_PENTIUM_AND_K6) and len(rows) == len(matches) and text[-1:] == "\n"
    refuse(not ten, "NBench's table does not have its ten rows", text)
    for name, (_, rate, *indices) in rows.items():
        above_zero(rate, "NBench", text)
        for index, unit in zip(indices, _PENTIUM_AND_K6[name], strict=True):
            same = agree(over(span(rate), (unit, unit)), span(index))
            refuse(not same, f"NBench's {name} of {rate} does not match the index {index}", text)
    warned, rate, *_ = rows[kernel]
    return float(rate), not warned


def stream(text: str, kernel: str) -> float:
    """STREAM's column "Best Rate MB/s" (10^6 bytes) of a kernel, one of four."""
    rows = _STREAM.findall(text)
    refuse([n for n, *_ in rows] != [*_ARRAYS], "STREAM's table does not have its four rows", text)
    unsure = "STREAM does not confirm that its arrays are right"
    only(_VALIDATED, text, unsure)
    refuse("Best Rate MB/s" not in text, unsure, text)
    rate, shortest = {name: (rate, shortest) for name, rate, shortest in rows}[kernel]
    moved = _ARRAYS[kernel] * _array_bytes(text) / MEGABYTE
    value, same = above_zero(rate, "STREAM", text), agree(span(rate), over(moved, span(shortest)))
    refuse(not same, f"STREAM's {kernel} of {rate} MB/s does not match {moved:g} MB in {shortest} s", text)
    return value


def stream_cached(text: str, caches: str) -> str:
    """The influence of caches in words, "" for large arrays; arrays that fit into the last are refused."""
    stream(text, "Copy")  # which the arrays' size makes
    array = _array_bytes(text)
    last = max((int(size) * KIBIBYTE for size in _CACHE.findall(read_twice(caches))), default=0)
    small = (
        f"STREAM's arrays of {array} bytes fit into the last cache of {last} bytes: build it "
        f"with -DSTREAM_ARRAY_SIZE={_TIMES * last // 8}"
    )
    refuse(3 * array <= last, small, text)
    if array < _TIMES * last:
        return f"arrays of {array / MEGABYTE:g} MB with a last cache of {last / MEGABYTE:g} MB"
    return ""


def _array_bytes(text: str) -> int:
    none = "STREAM does not give the size of its arrays"
    (elements,), (size,) = only(_SIZE, text, none), only(_ELEMENT, text, none)
    return int(elements) * int(size)


BENCHMARKS = (
    _program(
        "dhrystone",
        lambda text, *_: dhrystone(text),
        figure=(_DHRYSTONES, str(Unit.DHRYSTONES_PER_SECOND)),
        finish=_dhrystone,
        around=_watched,
    ),
    _program("whetstone", lambda text, *_: whetstone(text)),
    _program(
        "linpack",
        lambda text, _, board: linpack(text, _precision(board)),
        variant=lambda board: f"{_precision(board)} precision",
    ),
    _program("nbench", _nbench),
    _program(
        "stream",
        lambda text, label, _: stream(text, label.capitalize()),
        finish=_stream,
        around=lambda call: f"{call} && {{ {_CACHES}; }}",
    ),
)
