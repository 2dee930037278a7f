"""The ways of measuring one row: evmperf's own, and the others with which it is compared.

Each is the catalogue's benchmark, with its steps changed where it differs: what guards, prepares
and cleans up stays as it is.
"""

from __future__ import annotations

import base64
import gzip
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Profile
from evmperf.benchmarks.families import scratch
from evmperf.benchmarks.step import (
    CleanUp,
    Measure,
    Outputs,
    Plan,
    Prepare,
    SearchStep,
    Step,
    Trials,
    next_trial,
)
from evmperf.boards.board import Board
from evmperf.model.results import Case, Reading
from selftests.support import tiprograms

_COMPILE = [
    "aarch64-linux-gnu-gcc",
    "-O2",
    "-std=gnu11",
    "-s",
    "-w",
    "-include",
    "string.h",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-z,norelro",
]
_MIB = 1 << 20
_SIZES = ("4m", "1m", "256k", "4k")

Change = Callable[[Step], list[Step]]
"""What becomes of a step."""


@dataclass(frozen=True)
class Way:
    """One way of measuring a row, under the name that the table has for it."""

    name: str
    benchmark: Benchmark
    case: Case


@dataclass(frozen=True)
class Row:
    """Figures (by metric, as the table names them), evmperf's way of measuring them, and the other ways."""

    variant: str
    figures: Mapping[str, str]
    own: Way
    others: tuple[Way, ...]

    @property
    def ways(self) -> tuple[Way, ...]:
        return (self.own, *self.others)

    def unit(self, metric: str) -> str:
        return str(self.own.benchmark.metric(metric, self.own.case).unit)


def changed(benchmark: Benchmark, change: Change) -> Benchmark:
    """The benchmark with other steps."""

    def steps(board: Board, case: Case, plan: Plan) -> list[Step]:
        return [new for step in benchmark.steps(board, case, plan) for new in change(step)]

    return replace(benchmark, steps=steps)


def alone(benchmark: Benchmark, case: Case, repeats: int = 1) -> Benchmark:
    """The benchmark with this row only, each measurement of which is an execution of its own."""
    found = changed(benchmark, lambda step: [_unshared(step)])
    return replace(found, profiles={"quick": Profile((case,), repeats)})


def on_other_board(benchmark: Benchmark, section: str, **options: object) -> Benchmark:
    """The benchmark as on a board whose file says these options of a section."""

    def steps(board: Board, case: Case, plan: Plan) -> list[Step]:
        said = {**board.said, section: {**board.said[section], **options}}
        return list(benchmark.steps(replace(board, said=said), case, plan))

    return replace(benchmark, steps=steps)


def _unshared(step: Step) -> Step:
    return replace(step, shared="") if isinstance(step, Measure) else step


def reworded(pattern: str, new: str) -> Change:
    """A change of what the commands say."""

    def reword(command: str) -> str:
        return re.sub(pattern, new, command)

    def change(step: Step) -> list[Step]:
        if isinstance(step, SearchStep):
            return [replace(step, begin=lambda: _trials(step, reword))]
        return [replace(step, command=reword(step.command))]

    return change


def _trials(search: SearchStep, reword: Callable[[str], str]) -> Trials:
    trials = search.begin()
    trial, samples = next_trial(trials)
    while trial:
        readings = yield replace(trial, command=reword(trial.command))
        trial, samples = next_trial(trials, readings)
    return samples


def installed(programs: Sequence[Path], place: str, flags: Sequence[str] = ()) -> Prepare:
    """The step that puts a program on the board: compiled here, typed there."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "program"
        subprocess.run([*_COMPILE, *flags, *map(str, programs), "-o", str(target)], check=True)
        text = base64.b64encode(gzip.compress(target.read_bytes(), mtime=0)).decode()
    return Prepare("program", f"echo {text} | base64 -d | gzip -d >{place} && chmod +x {place}", 120)


def _way(name: str, benchmark: Benchmark, case: Case, change: Change | None = None, repeats: int = 1) -> Way:
    one = alone(benchmark, case, repeats)
    return Way(name, changed(one, change) if change else one, case)


def _row_of(benchmark: Benchmark, label: str, **params: object) -> Case:
    case = next(case for case in benchmark.cases("quick") if case.label == label)
    return replace(case, params={**case.params, **params})


def _as_one(benchmark: Benchmark, case: Case, reword: Change, *before: Step, repeats: int = 1) -> Benchmark:
    """A row of a table whose rows are one execution, without the other rows."""

    def steps(board: Board, case: Case, plan: Plan) -> list[Step]:
        every = benchmark.steps(board, case, plan)
        measures = [step for step in every if isinstance(step, Measure)]

        def parse(outputs: Outputs) -> list[Reading]:
            return [reading for step in measures for reading in step.parse(outputs)]

        (one,) = reword(replace(measures[0], name="row", parse=parse, shared=""))
        return [*before, one, *(step for step in every if isinstance(step, CleanUp))]

    return replace(benchmark, steps=steps, profiles={"quick": Profile((case,), repeats)})


def _file_system() -> Row:
    """dd beside TI's program, which is compiled of ../shared and typed at the board."""
    benchmark = catalogue.benchmark("emmc_ext4")
    size, buffer, place = 20 * _MIB, 102400, "/tmp/evmperf-filesystem-tests"
    case = replace(_row_of(benchmark, str(buffer)), params={"buffer_size": buffer, "file_bytes": size})
    sources, flags = tiprograms.file_system_sources()
    program = installed(sources, place, flags)
    text = reworded(r"for b in [\d ]+;(.*)", rf"for b in {buffer};\1")
    named = reworded(r"\bfilesystem_tests -", f"{place} -")
    ti = replace(benchmark.by("ti"), tools=())  # not on the PATH
    theirs = _as_one(ti, case, lambda step: named(*text(step)), program, repeats=2)
    own = _way("dd over the same file", benchmark, case, repeats=2)
    anew = _way("dd, each a new file", benchmark, case, reworded(r",notrunc", ""), repeats=2)
    figures = {
        "write_throughput": "eMMC ext4, writing 20 MiB in pieces of 102400",
        "write_cpu_load": "CPU load of writing",
    }
    figures |= {"read_throughput": "reading it cold", "read_cpu_load": "CPU load of reading"}
    others = (Way("filesystem_tests", theirs, case), anew)
    return Row("dd from memory, over the same file", figures, own, others)


def _history() -> Row:
    """fio's last size after the larger ones, beside the same size on a new file system."""
    benchmark = catalogue.benchmark("emmc_ext4_fio_1g")
    case = _row_of(benchmark, "4k", size="40m")
    alone_, sizes = r"for b in [\w ]+;(.*)", " ".join(_SIZES)
    fill = (
        "fio --name=fill --directory=$D --filename=emmc_TEST.0.0 --size=40m --rw=write --bs=1m --end_fsync=1"
    )
    filled = rf"D={scratch.MOUNT_POINT}; for b in 4k;\1"
    ways = {
        f"after {sizes}": reworded(alone_, rf"for b in {sizes};\1"),
        "on a new file": reworded(alone_, r"for b in 4k;\1"),
        "read after a fill of a new file": lambda step: reworded(
            r"do \(sleep", f"do [ $rw = write ] || {fill} >/dev/null || exit 3; (sleep"
        )(*reworded(alone_, filled)(step)),
    }
    own, *others = (Way(name, _as_one(benchmark, case, change), case) for name, change in ways.items())
    figures = {f"{side}_throughput": f"eMMC ext4, fio {side} of 4k in 40 MiB" for side in ("write", "read")}
    return Row("4m, 1m, 256k, 4k over one file", figures, own, tuple(others))


def _periods() -> Row:
    benchmark = catalogue.benchmark("audio_playback")
    case = _row_of(benchmark, "48000")
    return Row(
        "periods of 1024 frames",
        {"cpu_load": "audio playback at 48000 Hz, CPU load"},
        _way("periods of 1024 frames", benchmark, case),
        (_way("periods of 512 frames", on_other_board(benchmark, "alsa", period_frames=512), case),),
    )


def _bursts() -> Row:
    benchmark = catalogue.benchmark("eth_icssg_udp_egress_0loss")
    case = _row_of(benchmark, "1518", resolution_percent=10)
    return Row(
        "iperf3",
        {"throughput": "UDP egress without loss, 1518 bytes, e1000e"},
        _way("each millisecond", benchmark, case),
        (
            _way(
                "in bursts every 10 ms, as netperf -b -w 10ms",
                benchmark,
                case,
                reworded(r"iperf3 -c ", "iperf3 --pacing-timer 10000 -c "),
            ),
        ),
    )


ROWS: dict[str, Callable[[], Row]] = {
    "file-system": _file_system,
    "history": _history,
    "periods": _periods,
    "bursts": _bursts,
}
"""Every row by name, made when it is asked for: some compile a program."""
