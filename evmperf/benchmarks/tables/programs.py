"""Programs that measure the processor and its memory, and EEMBC's two suites."""

from collections.abc import Callable

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Outputs, output, reading_of
from evmperf.benchmarks.tools import coremark_pro, mith, programs
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_DECLARED = declared(__file__)
_SHELL = ShellTexts(__file__)


def _benchmark(
    name: str,
    measure: Callable[[Board, Case], Measure],
    variant: Callable[[Board], str] = lambda board: processor.UNPINNED,
    **more: object,
) -> Benchmark:
    """A table of one column under the performance governor."""
    return Benchmark(
        **{**_DECLARED[name], **more},
        steps=lambda board, case, _: [processor.PREPARE, measure(board, case), processor.PUT_BACK],
        conditions=lambda board: {VARIANT: variant(board)},
    )


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
        is_standin = program.startswith(programs.PREFIX)
        if is_standin:
            # The guides' programs know themselves how long they measure.
            call = f"{program} {case.params['seconds']}"
            expect_s = len(_DECLARED[name]["profiles"]["full"].cases) * float(case.params["seconds"]) + 1

        def parse(outputs: Outputs) -> list[Reading]:
            text, (metric, *_) = output(outputs, file), case.metrics or _DECLARED[name]["metrics"]
            figure_name, unit = figure if figure[0] else (label, str(metric.unit))
            standin = programs.standin(text, program, figure_name, unit) if is_standin else None
            value = read(text, figure_name, board) if standin is None else standin
            return [value if isinstance(value, Reading) else finish(value, label, text, outputs)]

        call = around(f'{processor.pinned(call)} >"$OUT/{file}" 2>&1')
        return Measure("measure", call, 1800, expect_s, parse=parse, shared=name)

    return _benchmark(
        name,
        measure,
        lambda board: "; ".join(filter(None, (processor.PINNED, variant(board)))),
        board_tools=lambda board: (board.text("system", name),),
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
    caches = outputs.get(programs.CACHES_FILE, "") if "STREAM version" in text else ""
    return Reading("perf", value, variant=programs.stream_cached(text, caches) if caches else "")


_SCORE = "coremark-pro"


def _coremark_pro(cores: str, contexts: int) -> Benchmark:
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

    def too_few(board: Board, _: Case) -> str:
        have = board.options.system.cores
        fewer = f"{board.file_name} has {have} cores, fewer than {contexts}"
        return fewer if have < contexts and contexts > 2 else ""

    return _benchmark(f"coremarkpro{cores}", measure, lacks=too_few)


def _multibench(board: Board, case: Case) -> Measure:
    """Each workload of the suite by itself, with the suite's settings: the guides' are unknown."""
    about = {"folder": board.options.system.multibench, "suite": "MultiBench", "key": "multibench"}
    run = _SHELL("multibench", **about, workload=case.label, file=mith.TEXT_FILE)
    parse = reading_of("perf", mith.TEXT_FILE, mith.workloads_per_second, case.label)
    return Measure("measure", run, 1800, 60, parse=parse)


BENCHMARKS = (
    _program(
        "dhrystone",
        lambda text, *_: programs.dhrystone(text),
        figure=(_DHRYSTONES, str(Unit.DHRYSTONES_PER_SECOND)),
        finish=_dhrystone,
        around=programs.dhrystone_watched,
    ),
    _program("whetstone", lambda text, *_: programs.whetstone(text)),
    _program(
        "linpack",
        lambda text, _, board: programs.linpack(text, _precision(board)),
        variant=lambda board: f"{_precision(board)} precision",
    ),
    _program("nbench", _nbench),
    _program(
        "stream",
        lambda text, label, _: programs.stream(text, label.capitalize()),
        finish=_stream,
        around=lambda call: f"{call} && {{ {programs.CACHES}; }}",
    ),
    _coremark_pro("", 1),
    _coremark_pro("_two_core", 2),
    _coremark_pro("_four_core", 4),
    _coremark_pro("_eight_core", 8),
    _benchmark("multibench", _multibench),
)
