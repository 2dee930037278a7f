"""Programs that measure the processor and its memory, and EEMBC's two suites."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.families.processor import perf
from evmperf.benchmarks.step import Measure, Outputs, output, reading_of
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit
from evmperf.tools import coremark_pro, mith, programs


def _benchmark(
    *,
    name: str,
    title: str,
    rows: Mapping[str, Metric],
    measure: Callable[[Board, Case], Measure],
    seconds: float = 10,
    tools: tuple[str, ...] = (),
    board_tools: Callable[[Board], tuple[str, ...]] = lambda board: (),
    section: str = "",
    variant: Callable[[Board], str] = lambda board: processor.UNPINNED,
) -> Benchmark:
    """A table of one column under the performance governor; quick stand-ins measure `seconds`."""
    metrics = {label: (metric,) for label, metric in rows.items()}
    # Rows that are all alike have the table's.
    own = metrics if len(set(rows.values())) > 1 else {}
    return Benchmark(
        name=name,
        driver="system",
        title=title,
        section=("System Benchmarks", section or title),
        metrics=next(iter(metrics.values())),
        profiles=Profile.both("benchmark", rows, (), own, seconds=(10, seconds)),
        steps=lambda board, case, _: [processor.PREPARE, measure(board, case), processor.PUT_BACK],
        tools=tools,
        board_tools=board_tools,
        version=2,
        conditions=lambda board: {VARIANT: variant(board)},
    )


def _program(
    *,
    name: str,
    title: str,
    rows: Mapping[str, Metric],
    read: Callable[[str, str, Board], float | Reading],
    figure: str = "",
    finish: Callable[[float, str, str, Outputs], Reading] = lambda value, *_: Reading("perf", value),
    around: Callable[[str], str] = lambda call: call,
    seconds: float = 0.5,
    variant: Callable[[Board], str] = lambda board: "",
) -> Benchmark:
    """A table of what one run of one program on CPU 0 prints; `read` gets its text, a row's label and
    the board.

    A stand-in has its own output, in which a row's figure has the row's name or, for all, `figure`.
    `finish` makes a reading of that, the row's label, the text and all outputs; `around` puts shell text
    around the program's call. `variant` says which build of the program is measured, where there are several.
    """
    file = f"{name}.txt"

    def measure(board: Board, case: Case) -> Measure:
        program, label = board.text("system", name), case.label
        call: str = program
        expect_s: float = 30
        is_standin = program.startswith(programs.PREFIX)
        if is_standin:
            # The guides' programs know themselves how long they measure.
            call = f"{program} {case.params['seconds']}"
            expect_s = len(rows) * float(case.params["seconds"]) + 1

        def parse(outputs: Outputs) -> list[Reading]:
            text, wanted = output(outputs, file), figure or label
            value: float | Reading
            if is_standin:
                value = programs.standin(text, program, wanted, str(rows[wanted].unit))
            else:
                value = read(text, wanted, board)
            return [value if isinstance(value, Reading) else finish(value, label, text, outputs)]

        call = around(f'{processor.pinned(call)} >"$OUT/{file}" 2>&1')
        return Measure("measure", call, 1800, expect_s, parse=parse, shared=name)

    return _benchmark(
        name=name,
        title=title,
        rows=rows,
        measure=measure,
        seconds=seconds,
        tools=("taskset",),
        board_tools=lambda board: (board.text("system", name),),
        variant=lambda board: "; ".join(filter(None, (processor.PINNED, variant(board)))),
    )


_DHRYSTONES = "dhrystone_per_second"


def _dhrystone(rate: float, label: str, text: str, outputs: Outputs) -> Reading:
    """By the clock that cpufreq confirms: guides publish 400 MHz for AM62L, and three times its DMIPS/MHz."""
    clock = programs.dhrystone_clock(output(outputs, programs.CLOCK_FILE), text)
    per_mhz = rate / programs.VAX_DHRYSTONES / clock
    return Reading("perf", {"cpu_clock": clock, "dhrystone_per_mhz": per_mhz, _DHRYSTONES: rate}[label])


def _precision(board: Board) -> str:
    """Of Linpack: single by TI's definition, although the guides' text says double; a board may differ."""
    is_standin = board.options.system.linpack.startswith(programs.PREFIX)
    return "double" if is_standin else board.options.system.linpack_precision


def _nbench(text: str, label: str, _: Board) -> Reading:
    rate, certain = programs.nbench(text, label.upper().replace("_", " "))
    return Reading("perf", rate, mark="" if certain else "not 95 % certain, says NBench")


def _stream(value: float, _: str, text: str, outputs: Outputs) -> Reading:
    # A stand-in says nothing of its arrays.
    known = outputs.get(programs.CACHES_FILE, "") if "STREAM version" in text else ""
    return Reading("perf", value, variant=programs.stream_cached(text, known) if known else "")


_SHELL = ShellTexts(__file__)
_RATE = perf(Unit.WORKLOADS_PER_SECOND, Direction.HIGHER, 1e-4, 1e6)
_SCORE = "coremark-pro"


def _coremark_pro(cores: str, title: str, contexts: int) -> Benchmark:
    """A table of CoreMark-PRO with so many contexts; the run with two serves the table of one, too."""
    column = "MultiCore" if contexts > 1 else "SingleCore"
    file, log_file = coremark_pro.TEXT_FILE, coremark_pro.LOG_FILE

    def measure(board: Board, case: Case) -> Measure:
        printed = "CoreMark-PRO" if case.label == _SCORE else case.label

        def parse(outputs: Outputs) -> list[Reading]:
            text, log = output(outputs, file), outputs.get(log_file, "")
            if log:
                return [Reading("perf", coremark_pro.logged(log, text, printed, column))]
            value = coremark_pro.rate(text, printed, column)
            return [Reading("perf", value, variant="two decimals: no log in builds/*/*/cert")]

        about = {"folder": board.options.system.coremark_pro, "suite": "CoreMark-PRO", "key": "coremark_pro"}
        about |= {"file": file, "log_file": log_file, "contexts": str(max(contexts, 2))}
        command = _SHELL("coremark_pro", **about)
        return Measure("measure", command, 3600.0, 900, parse=parse, shared=f"{_SCORE} {max(contexts, 2)}")

    rows = {
        **dict.fromkeys(coremark_pro.WORKLOADS, _RATE),
        _SCORE: perf(Unit.SCORE, Direction.HIGHER, 0.1, 1e6),
    }

    def too_few(board: Board, _: Case) -> str:
        have = board.options.system.cores
        return f"{board.file_name} has {have} cores, fewer than {contexts}" if have < contexts else ""

    found = _benchmark(
        name=f"coremarkpro{cores}",
        title=title,
        section="CoreMarkPro",
        rows=dict(sorted(rows.items())),
        measure=measure,
        tools=("make",),
    )
    return replace(found, options=(("system", "cores"),), lacks=too_few) if contexts > 2 else found


_WORKLOADS = """
    4m-check 4m-check-reassembly 4m-check-reassembly-tcp 4m-check-reassembly-tcp-cmykw2-rotatew2
    4m-check-reassembly-tcp-x264w2 4m-cmykw2 4m-cmykw2-rotatew2 4m-reassembly 4m-rotatew2 4m-tcp-mixed
    4m-x264w2 empty-wld idct-4m idct-4mw1 ippktcheck-4m ippktcheck-4mw1 ipres-4m ipres-4mw1 md5-4m
    md5-4mw1 rgbcmyk-4m rgbcmyk-4mw1 rotate-4ms1 rotate-4ms1w1 rotate-4ms64 rotate-4ms64w1 x264-4mq
    x264-4mqw1
"""


def _multibench(board: Board, case: Case) -> Measure:
    """Each workload of the suite by itself, with the suite's settings: the guides' are unknown."""
    about = {"folder": board.options.system.multibench, "suite": "MultiBench", "key": "multibench"}
    run = _SHELL("multibench", **about, workload=case.label, file=mith.TEXT_FILE)
    parse = reading_of("perf", mith.TEXT_FILE, mith.workloads_per_second, case.label)
    return Measure("measure", run, 1800, 60, parse=parse)


_KERNELS = """
    assignment fourier fp_emulation huffman idea lu_decomposition neural_net numeric_sort string_sort
"""
"""Nine of NBench's ten: the guides leave out BITFIELD."""

BENCHMARKS = (
    _program(
        name="dhrystone",
        title="Dhrystone",
        rows={
            "cpu_clock": perf(Unit.MEGAHERTZ, Direction.NONE, 10, 10_000),
            "dhrystone_per_mhz": perf(Unit.DMIPS_PER_MEGAHERTZ, Direction.HIGHER, 0.05, 20),
            _DHRYSTONES: perf(Unit.DHRYSTONES_PER_SECOND, Direction.HIGHER, 1e4, 1e9),
        },
        read=lambda text, *_: programs.dhrystone(text),
        figure=_DHRYSTONES,
        finish=_dhrystone,
        around=programs.dhrystone_watched,
    ),
    _program(
        name="whetstone",
        title="Whetstone",
        rows={"whetstone": perf(Unit.MWIPS, Direction.HIGHER, 1, 1e6)},
        read=lambda text, *_: programs.whetstone(text),
    ),
    _program(
        name="linpack",
        title="Linpack",
        rows={"linpack": perf(Unit.KILOFLOPS, Direction.HIGHER, 100, 1e9)},
        read=lambda text, _, board: programs.linpack(text, _precision(board)),
        variant=lambda board: f"{_precision(board)} precision",
    ),
    _program(
        name="nbench",
        title="NBench",
        rows=dict.fromkeys(_KERNELS.split(), perf(Unit.ITERATIONS_PER_SECOND, Direction.HIGHER, 0.001, 1e7)),
        read=_nbench,
        seconds=0.2,
    ),
    _program(
        name="stream",
        title="Stream",
        rows=dict.fromkeys(
            ("add", "copy", "scale", "triad"), perf(Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, 1, 1e6)
        ),
        read=lambda text, label, _: programs.stream(text, label.capitalize()),
        finish=_stream,
        around=lambda call: f"{call} && {{ {programs.CACHES}; }}",
    ),
    _coremark_pro("", "CoreMarkPro", 1),
    _coremark_pro("_two_core", "CoreMarkPro for Two Cores", 2),
    _coremark_pro("_four_core", "CoreMarkProFourCore Benchmarks", 4),
    _coremark_pro("_eight_core", "CoreMarkProEightCore Benchmarks", 8),
    _benchmark(
        name="multibench",
        title="MultiBench",
        rows=dict.fromkeys(_WORKLOADS.split(), _RATE),
        measure=_multibench,
    ),
)
