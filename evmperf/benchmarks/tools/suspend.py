"""Suspends a board in the background, and proves its sleep by the RTC, which runs on, and the counters of
/sys/power/suspend_stats (Documentation/ABI/testing/sysfs-power); and the kernel's times to suspend and resume
its devices, three phases down and three up, from its messages (dpm_show_time in drivers/base/power/main.c).
"""

import re
from dataclasses import dataclass

from evmperf.benchmarks.tools._checks import refuse, whole
from evmperf.model.errors import RefusedOutput
from evmperf.model.places import STEP_FOLDER
from evmperf.model.shelltext import ShellTexts

TEXT_FILE = "suspend.txt"
LEAD_S = 2
"""Seconds between starting the command and the sleep, in which the prompt must come back."""

_SHELL = ShellTexts(__file__)
_STATE = f"{STEP_FOLDER}/sleep"
END_S = 60
"""Seconds that a sleep command may take to end once the board answers again."""


def start(sleep_command: str) -> str:
    """Shell text: `sleep_command` in the background; fails on a board without proof of sleep."""
    # on a line of its own, as it may end with a comment.
    return _SHELL("start", state=_STATE, lead_s=LEAD_S, sleep_command=f"{sleep_command}\n")


def check() -> str:
    """Shell text for the board after its wake-up: writes `$OUT/suspend.txt`."""
    return _SHELL("check", state=_STATE, end_s=END_S, text_file=TEXT_FILE)


_LATE_S = 30
"""Seconds that waking up may take."""
_APART_S = 3.0
"""Tolerance in seconds between two clocks, one of which counts whole seconds and is read later."""


@dataclass(frozen=True)
class Sleep:
    """One sleep: seconds to the sleep command, and its least duration on the RTC (whole seconds)."""

    lead_s: float
    asleep_s: float


_COUNTS = r"(\d+\.\d+) rtc (\d+) success (\d+) fail (\d+)\n"
_TEXT = re.compile(
    rf"start {_COUNTS}before {_COUNTS}after {_COUNTS}status (\d+)\n"
    r"((?:said [^\n]*\n)*)failed dev ([^\n]*)\nfailed step ([^\n]*)\nend\n"
)


def parse(text: str, wanted_s: int) -> Sleep:
    """The sleep in `text`; raises RefusedOutput without a sleep, or for less than `wanted_s`."""
    match = whole(_TEXT, text, "the record of the sleep is not whole")
    up0, _, good0, _ = match.groups()[0:4]
    up1, rtc1, good1, bad1 = match.groups()[4:8]
    up2, rtc2, good2, bad2 = match.groups()[8:12]
    status, messages, device, step = match.groups()[12:16]
    lines = [line.removeprefix("said ").strip() for line in messages.splitlines()]
    why = "; ".join([line for line in lines if line][-2:])
    where = " ".join(word for word in (step.strip(), device.strip()) if word)
    messages = f"the board refused to sleep ({where or 'no device named'}; {why or 'no message'})"
    refuse(int(bad2) != int(bad1), messages, text)
    refuse(int(status), f"the sleep command ended with status {status}: {why or 'no message'}", text)
    sleeps = int(good1) - int(good0), int(good2) - int(good1)
    refuse(sleeps != (0, 1), f"the kernel counts {sum(sleeps)} sleeps instead of one", text)
    asleep = int(rtc2) - int(rtc1)
    refuse(asleep < wanted_s, f"the board slept for {asleep} s instead of {wanted_s} s", text)
    # The kernel's clock includes the sleep or stops during it; otherwise a clock was set.
    by_kernel = float(up2) - float(up1)
    messages = f"the board slept for {asleep} s on its RTC and {by_kernel:g} s on its kernel's clock"
    jumped = asleep > wanted_s + _LATE_S or min(abs(by_kernel - asleep), by_kernel) > _APART_S
    refuse(jumped, f"{messages}: one of them jumped", text)
    return Sleep(float(up1) - float(up0), asleep - 1.0)


PHASES_FILE = "pm_phases.txt"

_DEBUG = "/sys/power/pm_debug_messages"
_MARK = "evmperf: sleeping"
_DOWN = ("suspend", "late suspend", "noirq suspend")
_UP = ("noirq resume", "early resume", "resume")
_PHASE = re.compile(
    r"\[ *(\d+\.\d{6})\] PM: ([a-z ]+) of devices (complete|aborted) after (\d+\.\d{3}) msecs"
)
_STAMP = re.compile(r"\[ *(\d+\.\d{6})\] ")
_ENTRY = re.compile(r"\[ *\d+\.\d{6}\] PM: suspend entry \(\S+\)")
_EXIT = re.compile(r"\[ *\d+\.\d{6}\] PM: suspend exit")
_ROUNDING_MS = 0.1


def reported(sleep_command: str) -> str:
    """Shell text: `sleep_command` and the kernel's messages of it in PHASES_FILE; fails without them."""
    about = {"debug": _DEBUG, "mark": _MARK, "text_file": PHASES_FILE}
    return _SHELL("sleep", **about, sleep_command=sleep_command)


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
