"""The kernel's times to suspend and resume its devices: three phases down, three up, from its messages with
/sys/power/pm_debug_messages set (dpm_show_time in drivers/base/power/main.c).
"""

import re

from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts
from evmperf.tools._checks import refuse

TEXT_FILE = "pm_phases.txt"

_SHELL = ShellTexts(__file__)
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


def command(sleep_command: str) -> str:
    """Shell text: `sleep_command` and the kernel's messages of it in TEXT_FILE; fails without them."""
    about = {"debug": _DEBUG, "mark": _MARK, "text_file": TEXT_FILE}
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
