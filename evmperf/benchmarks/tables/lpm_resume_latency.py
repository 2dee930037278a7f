"""The kernel's times to suspend and to resume its devices, three phases down and three up, from its messages
(dpm_show_time in drivers/base/power/main.c).
"""

import re
from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, unset
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output, readings
from evmperf.benchmarks.tools._checks import refuse
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_FILE = "pm_phases.txt"

_DOWN = ("suspend", "late suspend", "noirq suspend")
_UP = ("noirq resume", "early resume", "resume")
_PHASE = re.compile(
    r"\[ *(\d+\.\d{6})\] PM: ([a-z ]+) of devices (complete|aborted) after (\d+\.\d{3}) msecs"
)
_STAMP = re.compile(r"\[ *(\d+\.\d{6})\] ")
_ENTRY = re.compile(r"\[ *\d+\.\d{6}\] PM: suspend entry \(\S+\)")
_EXIT = re.compile(r"\[ *\d+\.\d{6}\] PM: suspend exit")
_ROUNDING_MS = 0.1
_MODES = {
    "Deep Sleep": "deep_sleep_command",
    "RTC Only + DDR": "rtc_ddr_command",
    "MCU Only": "mcu_only_command",
    "I/O Only + DDR": "io_ddr_command",
}
"""The options that have the modes' commands."""


def _steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
    sleep_s = int(case.params["sleep_s"])
    command = board.text("power", _MODES[case.label]).replace("{seconds}", str(sleep_s))

    def parse(outputs: Outputs) -> list[Reading]:
        down_ms, up_ms = latencies(output(outputs, _FILE))
        return readings(suspend_latency=down_ms, resume_latency=up_ms)

    about = {"debug": "/sys/power/pm_debug_messages", "mark": "evmperf: sleeping", "text_file": _FILE}
    sleep = _SHELL("sleep", **about, sleep_command=command)
    return [
        Measure(f"sleep{number}", sleep, sleep_s + 120, sleep_s + 2, parse=parse, repetition=number)
        for number in range(plan.repeats)
    ]


def latencies(text: str) -> tuple[float, float]:
    """Milliseconds for which devices were suspended and resumed in one sleep; raises RefusedOutput."""
    lines = text.splitlines()
    refuse(lines[-1:] != ["end"] or text[-1] != "\n", "the record of the sleep is not whole", text)
    one = all(sum(map(bool, map(end.fullmatch, lines))) == 1 for end in (_ENTRY, _EXIT))
    refuse(not one, "the kernel does not report exactly one sleep", text)
    took: dict[str, float] = {}
    before_s = 0.0
    for line in lines:
        match, stamp, since_s = _PHASE.fullmatch(line), _STAMP.match(line), before_s
        before_s = float(stamp[1]) if stamp else before_s
        if not match:
            refuse(" of devices " in line, f"the kernel's message is not whole: {line[:120]!r}", text)
            continue
        at_s, phase, ended, milliseconds = match.groups()
        whole = phase.startswith(("start", "end"))
        late = not whole and float(milliseconds) > (float(at_s) - since_s) * 1e3 + _ROUNDING_MS
        refuse(late, f"the phase {phase} took longer than its messages are apart", text)
        refuse(ended != "complete", f"the kernel gave up the phase {phase}", text)
        refuse(phase in took, f"the kernel reports twice the phase {phase}", text)
        took[phase] = float(milliseconds)
    if missing := [phase for phase in (*_DOWN, *_UP) if phase not in took]:
        raise RefusedOutput(f"the kernel does not report the phase {missing[0]}", text)
    # "start" is the first phase together with what comes before it, and so no shorter.
    longer = took.get("start suspend", took["suspend"]) < took["suspend"]
    refuse(longer, "a phase took longer than the sum that contains it", text)
    down, up = (round(sum(took[phase] for phase in side), 3) for side in (_DOWN, _UP))
    return down, up


BENCHMARK = Benchmark(
    **declared(__file__)["lpm_resume_latency"],
    steps=_steps,
    lacks=lambda board, case: unset(board, "power", _MODES[case.label]),
)
