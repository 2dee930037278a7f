"""Stand-ins for a board: this machine's own shell, and a bench around it."""

import subprocess

from evmperf.boards.console.marks import ObservedBoot, find
from evmperf.boards.console.record import POWER_ON, ConsoleRecord
from evmperf.measure.bench import ShellReply
from evmperf.model.errors import LabError, ToolError
from evmperf.model.places import STEP_FOLDER
from selftests.support.texts import BOOT, LOGIN


class SteppingClock:
    """A clock of its own: each look at it takes `step_s` seconds, and sleeping takes none here."""

    def __init__(self, step_s=1.0):
        self.now_s = 0.0
        self.step_s = step_s

    def monotonic(self):
        self.now_s += self.step_s
        return self.now_s

    def time_ns(self):
        return round(self.now_s * 1e9)

    def sleep(self, seconds):
        self.now_s += seconds


class LocalShell:
    """evmperf's Shell that runs commands here, below a folder of its own instead of /tmp/evmperf.

    `scripted` are exceptions or functions of a ShellReply, used up one a command that holds `when`.
    """

    def __init__(self, folder, scripted=(), when=f". {STEP_FOLDER}/step"):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder / "evmperf"
        self.scripted = list(scripted)
        self.when = when
        self.asked = []
        self.hanging = None
        self.files = None

    def run(self, command, timeout_s):
        self.asked.append(command)
        act = self.scripted.pop(0) if self.scripted and self.when in command else None
        if isinstance(act, Exception):
            raise act
        if "kill -9 " in command and not self.hanging:
            return ShellReply(1, "no such process")  # what is not ours is never killed
        process = subprocess.Popen(
            ["sh", "-c", command.replace(STEP_FOLDER, str(self.folder))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a terminal's shell gives each command a group of its own
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.hanging = process  # it ignores Ctrl-C
            raise ToolError(f"`{command}` did not end within {timeout_s} s") from None
        reply = ShellReply(process.returncode, output.decode("utf-8", "replace"))
        return act(reply) if act else reply


class LocalBench:
    """evmperf's Bench over a LocalShell, perhaps with another for the tester, and a meter;
    exceptions in `reach` are raised instead of a shell.
    """

    def __init__(self, board, shell, *, reach=(), boots=(), tester=None, meter=None):
        self.board = board
        self._tester = tester
        self._meter = meter
        self._shell = shell
        self._reach = list(reach)
        self._boots_to_come = list(boots)
        self._boots_done = []
        self.abandoned = 0
        self.reached = 0

    def shell(self):
        self.reached += 1
        if self._reach:
            error = self._reach.pop(0)
            if error:
                raise error
        return self._shell

    uboot = shell

    def tester(self):
        if not self._tester:
            raise LabError("there is no tester")
        return self._tester

    def meter(self):
        return self._meter

    def cold_boot(self, kernel_arguments):
        act = self._boots_to_come.pop(0)
        if isinstance(act, Exception):
            raise act
        self._boots_done.append(act)
        return act

    def abandon(self):
        self.abandoned += 1

    def boots(self):
        done, self._boots_done = self._boots_done, []
        return done


def good_boot(seconds=2.0, bound_ns=1_000_000, begin=10**9):
    """A boot whose prompt came so long after "Starting kernel", which came at `begin` in ns; its bytes have
    that bound.
    """
    at = BOOT.index(b" ...", BOOT.index(b"Starting kernel"))
    end = begin + round(seconds * 1e9)
    records = [
        ConsoleRecord(0, 0, "#", POWER_ON.encode()),
        ConsoleRecord(begin, begin, "<", BOOT[:at], bound_ns),
        ConsoleRecord(end, end, "<", BOOT[at:], bound_ns),
    ]
    return ObservedBoot("booted", "", 1, seconds + 1, find(records, LOGIN))


def failed_boot(error, phase="login prompt"):
    """A boot that ended like this."""
    return ObservedBoot("booted", "", 1, 60.0, {}, error, phase, "power: on")
