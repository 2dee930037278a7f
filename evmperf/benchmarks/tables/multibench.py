"""EEMBC MultiBench: each workload of the suite by itself.

How the guides call it is documented nowhere; a workload runs here with the suite's own settings.
"""

from __future__ import annotations

from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.families.system import at_full_speed, enter, perf, profiles
from evmperf.benchmarks.step import Measure, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import VARIANT, Case, Direction, Reading
from evmperf.model.units import Unit
from evmperf.tools import mith

_RATE = perf(Unit.WORKLOADS_PER_SECOND, Direction.HIGHER, 1e-4, 1e6)
_WORKLOADS = (
    "4m-check",
    "4m-check-reassembly",
    "4m-check-reassembly-tcp",
    "4m-check-reassembly-tcp-cmykw2-rotatew2",
    "4m-check-reassembly-tcp-x264w2",
    "4m-cmykw2",
    "4m-cmykw2-rotatew2",
    "4m-reassembly",
    "4m-rotatew2",
    "4m-tcp-mixed",
    "4m-x264w2",
    "empty-wld",
    "idct-4m",
    "idct-4mw1",
    "ippktcheck-4m",
    "ippktcheck-4mw1",
    "ipres-4m",
    "ipres-4mw1",
    "md5-4m",
    "md5-4mw1",
    "rgbcmyk-4m",
    "rgbcmyk-4mw1",
    "rotate-4ms1",
    "rotate-4ms1w1",
    "rotate-4ms64",
    "rotate-4ms64w1",
    "x264-4mq",
    "x264-4mqw1",
)


def _steps(board: Board, case: Case, _: Plan) -> list[Step]:
    # The guides write all names in small letters, EEMBC does not.
    find = f'e=$(ls builds/*/*/bin/*.exe | grep -i "/{case.label}[.]exe$")'
    missing = f'{{ echo "no {case.label}.exe below builds/: build MultiBench"; exit 1; }}'
    run = f'"./$e" -v0 >"$OUT/{mith.TEXT_FILE}" 2>&1'
    folder = board.options.system.multibench
    return at_full_speed(
        Measure(
            "measure",
            f"{enter(folder, 'MultiBench', 'multibench')} && {{ {find} || {missing}; }} && {run}",
            1800,
            60,
            parse=lambda outputs: [
                Reading("perf", mith.workloads_per_second(output(outputs, mith.TEXT_FILE), case.label))
            ],
        )
    )


BENCHMARK = Benchmark(
    name="multibench",
    driver="system",
    title="MultiBench",
    section=("System Benchmarks", "MultiBench"),
    metrics=(_RATE,),
    profiles=profiles(dict.fromkeys(_WORKLOADS, ()), 10),
    place=Place.SHELL,
    steps=_steps,
    version=2,
    conditions=lambda _: {VARIANT: processor.UNPINNED},
)
