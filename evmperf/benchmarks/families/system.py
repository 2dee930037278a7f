"""What the system benchmarks share: their one column, and programs that the board file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import coremark_pro, standin

SECTION = "system"
"""Section of the board file."""

_COREMARK_PRO_S = 3600.0


def perf(unit: Unit, better: Direction, low: float, high: float) -> Metric:
    """The column `perf` of a row in that unit; where rows differ, each has its own."""
    return Metric("perf", unit, better, "perf", low=low, high=high)


def program_call(program: str, case: Case, file: str) -> str:
    """Shell text that runs a benchmark's program on CPU 0, what it prints into `$OUT/FILE`.

    A stand-in is told how long; the guides' programs know that themselves.
    """
    if program.startswith(standin.PREFIX):
        program = f"{program} {case.params['seconds']}"
    return f'{processor.pinned(program)} >"$OUT/{file}" 2>&1'


def at_full_speed(measure: Measure) -> list[Step]:
    """A step under the performance governor, which is put back after it."""
    return [processor.prepare(), measure, processor.put_back()]


def usual_s(program: str, case: Case, figures: int) -> float:
    """Seconds that a benchmark's program with so many figures usually takes."""
    if program.startswith(standin.PREFIX):
        return figures * float(case.params["seconds"]) + 1
    return 30


def profiles(labels: Mapping[str, tuple[Metric, ...]], seconds: float) -> dict[str, Profile]:
    """Rows by label, with their own metrics; stand-ins measure `seconds` when it is to be quick."""

    def profile(for_s: float) -> Profile:
        return Profile(
            tuple(
                Case(label, {"benchmark": label, "seconds": for_s}, metrics)
                for label, metrics in labels.items()
            )
        )

    return {"full": profile(10), "quick": profile(seconds)}


def program_benchmark(
    *,
    name: str,
    title: str,
    metric: Metric,
    labels: tuple[str, ...],
    read: Callable[[str, str, Board], float | Reading],
    seconds: float = 0.5,
    variant: Callable[[Board], str] = lambda board: "",
    beside: tuple[str, Callable[[str, Outputs], str]] = ("", lambda text, outputs: ""),
) -> Benchmark:
    """A table of what one run of one program prints; `read` gets its text, a row's label and the
    board. `variant` says which build of the program is measured, where there are several; `beside`
    is shell text that is run after it, and what its outputs say of the program's text: a variant.
    """
    file = f"{name}.txt"

    def steps(board: Board, case: Case, _: Plan) -> list[Step]:
        program = board.text(SECTION, name)

        def parse(outputs: Outputs) -> list[Reading]:
            text = output(outputs, file)
            if program.startswith(standin.PREFIX):
                value: float | Reading = standin.figure(text, program, case.label, str(metric.unit))
            else:
                value = read(text, case.label, board)
            if isinstance(value, Reading):
                return [value]
            return [Reading("perf", value, variant=beside[1](text, outputs))]

        call = program_call(program, case, file)
        if beside[0]:
            call = f"{call} && {{ {beside[0]}; }}"
        expect_s = usual_s(program, case, len(labels))
        return at_full_speed(Measure("measure", call, 1800, expect_s, parse=parse, shared=name))

    def conditions(board: Board) -> dict[str, str]:
        return {VARIANT: "; ".join(filter(None, (processor.PINNED, variant(board))))}

    return Benchmark(
        name=name,
        driver="system",
        title=title,
        section=("System Benchmarks", title),
        metrics=(metric,),
        profiles=profiles(dict.fromkeys(labels, ()), seconds),
        place=Place.SHELL,
        steps=steps,
        tools=("taskset",),
        board_tools=lambda board: (board.text(SECTION, name),),
        version=2,
        conditions=conditions,
    )


def coremark_pro_benchmark(*, name: str, column: str) -> Benchmark:
    """A table of CoreMark-PRO, with one context (`SingleCore`) or with two (`MultiCore`).

    One run, which measures with one context and with two, serves both tables.
    """
    file = coremark_pro.TEXT_FILE

    def steps(board: Board, case: Case, _: Plan) -> list[Step]:
        folder = board.options.system.coremark_pro
        make = (
            f'make -s TARGET=linux64 XCMD=-c2 certify-all >"$OUT/{file}" 2>&1 && '
            # Earlier runs' logs stay there.
            f'find builds -path "*/cert/*" -name "*.log" -newer "$OUT/began" -exec cat {{}} + '
            f'>"$OUT/{coremark_pro.LOG_FILE}"'
        )
        printed = {"coremark-pro": "CoreMark-PRO"}.get(case.label, case.label)

        def parse(outputs: Outputs) -> list[Reading]:
            text, log = output(outputs, file), outputs.get(coremark_pro.LOG_FILE, "")
            if log:
                return [Reading("perf", coremark_pro.logged(log, text, printed, column))]
            value = coremark_pro.rate(text, printed, column)
            return [Reading("perf", value, variant="two decimals: no log in builds/*/*/cert")]

        enters = enter(folder, "CoreMark-PRO", "coremark_pro")
        return at_full_speed(
            Measure(
                "measure",
                f'{enters} && : >"$OUT/began" && {make}',
                _COREMARK_PRO_S,
                900,
                parse=parse,
                shared="coremark-pro",
            )
        )

    rate = perf(Unit.WORKLOADS_PER_SECOND, Direction.HIGHER, 1e-4, 1e6)
    score = perf(Unit.SCORE, Direction.HIGHER, 0.1, 1e6)
    labels = (
        "cjpeg-rose7-preset",
        "core",
        "coremark-pro",
        "linear_alg-mid-100x100-sp",
        "loops-all-mid-10k-sp",
        "nnet_test",
        "parser-125k",
        "radix2-big-64k",
        "sha-test",
        "zip-test",
    )
    rows = {label: (score if label == "coremark-pro" else rate,) for label in labels}
    return Benchmark(
        name=name,
        driver="system",
        title={"SingleCore": "CoreMarkPro", "MultiCore": "CoreMarkPro for Two Cores"}[column],
        section=("System Benchmarks", "CoreMarkPro"),
        metrics=(rate,),
        profiles=profiles(rows, 10),
        place=Place.SHELL,
        steps=steps,
        tools=("make",),
        version=2,
        conditions=lambda _: {VARIANT: processor.UNPINNED},
    )


def enter(folder: str, suite: str, key: str) -> str:
    """Shell text that goes to where a suite of EEMBC's is, or says what to do about it."""
    remedy = f"install it, or say options.{SECTION}.{key} or options.absent in the board file"
    return f'{{ cd {folder} || {{ echo "no {suite} in {folder}: {remedy}"; exit 1; }}; }}'
