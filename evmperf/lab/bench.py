"""The bench as Labgrid gives it: a target with a strategy, a stamped console, and two shells."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import requests
from labgrid.exceptions import NoDriverFoundError
from labgrid.strategy import StrategyError
from pexpect import TIMEOUT

from evmperf.boards import ends
from evmperf.boards.board import Board
from evmperf.boards.console.attempt import NotReached, tell
from evmperf.boards.console.booted import identity
from evmperf.boards.console.marks import ObservedBoot, find, remarks
from evmperf.boards.console.powering import Person, while_powered
from evmperf.boards.console.tree import INITCALLS
from evmperf.boards.options import End
from evmperf.boards.variation import Variation
from evmperf.lab import guest
from evmperf.lab.ends import EndWatch
from evmperf.lab.meter import RailMeterDriver
from evmperf.lab.shell import EvmShellDriver, LinuxShell, PlainShell, UbootShell
from evmperf.lab.sshlink import SshFiles, SshLink
from evmperf.lab.tester import LOCAL, VIRTUAL, CommandTester, open_tester
from evmperf.measure import hostload
from evmperf.measure.bench import Meter, Shell
from evmperf.model.errors import (
    BoardError,
    BoardLost,
    EvmperfError,
    LabError,
    Stopped,
    ToolError,
    UsageError,
    was_ctrl_c,
)

_ALL_LINES = 1 << 30
_INITCALLS_S = 60.0
_LIMITS = {
    "strategy": ("uboot_timeout", "kernel_timeout", "boot_timeout", "silence_timeout"),
    "shell": ("login_timeout", "await_login_timeout"),
}
"""Limits of a boot, in seconds of an idle host where the board is a virtual EVM."""
_ACTIVITIES = {
    "off": "switching the board off",
    "uboot": "booting to U-Boot",
    "booted": "booting Linux",
    "shell": "booting Linux",
    "provisioned": "putting the image on the board",
}
"""What a person reads while the strategy goes to a state."""


class LabgridBench:
    """evmperf's Bench over a Labgrid target whose strategy is BootStrategy."""

    def __init__(
        self,
        target: Any,
        board: Board,
        variation: Variation | None = None,
        check: Callable[[], None] = lambda: None,
        person: Person | None = None,
    ) -> None:
        """`check` raises BoardLost when the board is not ours any more; it is called directly
        before an action of the power switch, and before each command. `lose` stops bytes at once:
        asking before each let more of them through on a busy host, as answers are late there.
        `person` works the power where the board file says so.
        """
        self.board = board
        self._told_power = (-1, "")
        """What the power switch said after so many power cycles."""
        self.activity = ""
        """What the bench is doing with the board, "" while it leaves it to commands."""
        self._check = check
        self._around_commands = (check, self._slowness, self._watched)
        self._target = target
        self._longer = 1.0
        """How many times longer the limits of the last boot were than declared."""
        self._tester: CommandTester | None = None
        self._macs: dict[str, str] = {}
        """Who answered for each end over the network, in the first boot that had it."""
        self._strategy = guest.strategy_of(target, board)
        self._console = self._strategy.console
        self._boots: list[ObservedBoot] = []
        self._shell: LinuxShell | PlainShell | None = None
        self._link: SshLink | None = None
        if not self._strategy.shell and self._strategy.ssh:
            self._link = self._strategy.link = SshLink(self._strategy.ssh)
        elif not (self._console or self._strategy.shell):
            raise UsageError(
                f"{board.file_name} has no access to the board: add a serial port with "
                f"StampedSerialDriver, or a NetworkService with SSHDriver"
            )
        if person:
            self._strategy.take_person(person)
        self._strategy.listeners.append(self._keep_boot)
        self._strategy.guards.append(check)
        variation = variation or Variation()
        self._arguments = variation.kernel_arguments
        self._strategy.kernel_arguments = self._arguments
        self._strategy.uboot_variables = dict(variation.uboot)

    @property
    def power_cycles(self) -> int:
        """Times the board was made to boot, or that was tried."""
        return sum(attempt.boots for attempt in self._strategy.attempts)

    def record_console(self, path: Any) -> None:
        """Write the console's record to `path` from now on."""
        if self._console:
            self._console.history.open(path)

    def shell(self) -> Shell:
        """A root shell in Linux; raises BoardError or LabError."""
        before = len(self._strategy.attempts)
        self._transition("shell")
        if self._link and self._link.shell:
            self._check()
            return self._link.shell
        if self._shell is None or len(self._strategy.attempts) != before:
            self._close_files()
            kind = LinuxShell if isinstance(self._strategy.shell, EvmShellDriver) else PlainShell
            self._shell = kind(self._strategy.shell, *self._around_commands, SshFiles.of(self._target))
        return self._shell

    def tester(self) -> CommandTester:
        """A root shell on the tester; raises LabError when there is none."""
        if self._tester is None:
            self._tester = open_tester(self.board, self._target)
        return self._tester

    def lose(self, why: str) -> None:
        """The board is somebody else's: send it nothing more. Callable in any thread."""
        for way in (self._console, self._link and self._link.shell, self._tester):
            if way:
                way.forbid(BoardLost(why))

    def close(self) -> None:
        """Give up the connections to the tester and to the board's files."""
        self._close_files()
        if self._tester:
            self._tester.close()
            self._tester = None

    def _close_files(self) -> None:
        if self._link:
            self._link.close()
        if self._shell and self._shell.files:
            self._shell.files.close()

    def meter(self) -> Meter:
        """The meter on the board's rails; raises LabError when there is none."""
        with contextlib.suppress(NoDriverFoundError):
            meter: Meter = self._target.get_driver(RailMeterDriver)
            return meter
        raise LabError(f"{self.board.file_name} names no meter: see docs/power.md for what to add")

    def uboot(self) -> UbootShell:
        """U-Boot's prompt; raises BoardError or LabError."""
        self._transition("uboot")
        tell(self._console, "stage", "settle")
        return UbootShell(self._strategy.uboot, *self._around_commands)

    def _watched(self, doing: str) -> contextlib.AbstractContextManager[None]:
        """Within it, the board's loss of power ends `doing`; a switch that says off at the first command of a
        boot is wrong, and is asked no more.
        """
        if self._told_power[0] != self.power_cycles:
            self._told_power = (self.power_cycles, "")
            with contextlib.suppress(Exception):  # a broken switch is noticed when it has to switch
                self._told_power = (self.power_cycles, self._strategy.way.state())
        if self._told_power != (self.power_cycles, "on"):
            return contextlib.nullcontext()
        return while_powered(self._strategy.way, self._console, doing)

    def cold_boot(self, kernel_arguments: str) -> ObservedBoot:
        """One power cycle and boot, without retries; a reset where that is the board's way. A boot by hand
        that did not begin with the power seen off is done once more. Raises LabError, and Stopped.
        """
        boot = self._boot(kernel_arguments)
        if not boot.error and self.board.power == "hand" and not self._strategy.way.seen_off:
            boot = self._boot(kernel_arguments)
        return boot

    def _boot(self, kernel_arguments: str) -> ObservedBoot:
        if self._link:
            self.shell()  # a board that was never reached cannot be reset
        strategy = self._strategy
        before = strategy.status
        retries, strategy.retries = strategy.retries, 0
        strategy.kernel_arguments = f"{self._arguments} {kernel_arguments}".strip()
        strategy.forget()
        asked = {} if self._link or "init=" in kernel_arguments else ends.of_board(self.board)
        try:
            words = self._words_beside() if asked else ()
            with EndWatch(asked, words, self._macs, self._lines(asked)) as watch:
                self._transition("shell" if self._link else "booted")
                place = len(self._boots) - 1
                ended = watch.await_all(self._boots[place], self._console, self.shell)
                if self._console and not self._link and "init=" not in kernel_arguments:
                    self._ask_initcalls()
                # A login that failed meanwhile was kept behind the boot.
                self._boots[place:] = [*self._boots[place + 1 :], ended]
        except BoardError:
            pass  # it is in the record of the attempt, which is what we return
        except Stopped:
            strategy.status = before if not strategy.way.is_off else type(before).off
            raise
        finally:
            strategy.retries, strategy.kernel_arguments = retries, self._arguments
        if self._link and not self._boots[-1].error:
            self._boots[-1] = self._link.timed(self._boots[-1], strategy.boot_timeout)
        return self._boots[-1]

    def _lines(self, asked: Mapping[str, End]) -> dict[str, Any]:
        """Drivers of the ends that are lines; raises UsageError or LabError."""
        drivers: dict[str, Any] = {}
        for name, end in asked.items():
            if end.gpio:
                try:
                    drivers[name] = self._target.get_driver("DigitalOutputProtocol", name=end.gpio)
                except NoDriverFoundError:
                    raise UsageError(
                        f"{self.board.file_name}: boot.ends.{name}: no digital output driver has the name "
                        f"{end.gpio!r}: name one of Labgrid's so under drivers"
                    ) from None
                except Exception as error:  # noqa: BLE001  # a lab's own driver raises anything
                    raise LabError(f"boot.ends.{name}: {end.gpio} does not start: {error}") from None
        return drivers

    def _ask_initcalls(self) -> None:
        """Have the console's record hold the initcalls of a boot that timed them; without them it counts."""
        if "initcall_debug" in self._console.output():
            with contextlib.suppress(BoardError, ToolError):
                self.shell().run(INITCALLS, _INITCALLS_S)

    def _words_beside(self) -> Sequence[str]:
        """Words before a program that runs on this machine beside the board, where the tester is here."""
        is_here = self.board.tester.partition(":")[0] in (LOCAL, VIRTUAL)
        return self.tester().words_here if is_here else ()

    def force(self, state: str) -> None:
        """Take the board to be at a state without switching; raises UsageError, BoardError or LabError."""
        try:
            self._strategy.force(state)
        except KeyError:
            raise UsageError(
                f"--lg-initial-state {state}: is not a state of the strategy; known are off, uboot, "
                f"booted and shell"
            ) from None
        except (EvmperfError, StrategyError, TIMEOUT) as error:
            raise classify(error) from error

    def abandon(self) -> None:
        """The next use power-cycles the board."""
        self._strategy.forget()

    def off(self) -> None:
        """Switch the board off; raises LabError, UsageError where there is no switch."""
        self._transition("off")

    def before_power_on(self, prepare: Callable[[], None]) -> None:
        """Have `prepare` called before each power-on, with the power off."""
        self._strategy.before_power_on.append(prepare)

    @contextlib.contextmanager
    def started_from(self, medium: str) -> Iterator[Shell]:
        """A shell of the system that another medium of the strategy starts; afterwards the next use
        power-cycles the board, and starts it from its own. Raises BoardError or LabError.
        """
        own, self._strategy.medium = self._strategy.medium, medium
        self._strategy.forget()
        try:
            yield self.shell()
        finally:
            self._strategy.medium = own
            self._strategy.forget()

    def console_lines(self) -> list[str]:
        """What the board has printed since its last power-on, line by line."""
        return list(self._console.tail(_ALL_LINES)) if self._console else []

    def boots(self) -> list[ObservedBoot]:
        """Boots attempted since the last call."""
        boots, self._boots = self._boots, []
        return boots

    def post_mortem(self) -> str:
        """Power state and the last lines of the console."""
        return str(self._strategy.post_mortem())

    def _transition(self, state: str) -> None:
        self._check()
        doing, did = (_ACTIVITIES.get(name, "") for name in (state, self._strategy.status.name))
        self.activity = doing if doing != did else ""
        try:
            with self._patience():
                self._strategy.transition(state)
        except StrategyError as error:
            attempts = self._strategy.attempts
            raise self._classified(error, attempts[-1].phase if attempts else "") from error
        except AssertionError as error:
            if was_ctrl_c(error):
                raise KeyboardInterrupt from error
            raise
        finally:
            self.activity = ""

    def _slowness(self) -> float:
        """How many times longer all takes than its limits say: a virtual EVM's are an idle host's."""
        return hostload.slowness() if self.board.is_virtual else 1.0

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """Have the limits of a boot as much longer as the host is slower."""
        self._longer = self._slowness()
        drivers = {"strategy": self._strategy, "shell": self._strategy.shell}
        limits = [(drivers[d], name) for d, names in _LIMITS.items() if drivers[d] for name in names]
        declared = [(driver, name, getattr(driver, name)) for driver, name in limits]
        try:
            for driver, name, seconds in declared:
                setattr(driver, name, round(seconds * self._longer))
            yield
        finally:
            for driver, name, seconds in declared:
                setattr(driver, name, seconds)

    def _classified(self, error: BaseException, phase: str) -> EvmperfError:
        failure = classify(error, phase)
        if self._longer < hostload.BUSY or type(failure) is not NotReached:
            return failure
        late = BoardError(f"{failure}; the host is busy, so limits were {self._longer:.0f} times as long")
        late.kind = failure.kind
        return late

    def _keep_boot(self, attempt: Any) -> None:
        note = self._link.note if self._link else ""
        if isinstance(attempt.error, Stopped) or not (attempt.boots or attempt.error or note):
            return
        arguments, console = self._strategy.kernel_arguments, self._console
        marks = find(console.records() if console else [], self._strategy.prompt_after(arguments))
        notes = [*(console.notes if console else ()), *remarks(marks), *([note] if note else [])]
        self._boots.append(
            ObservedBoot(
                goal=attempt.goal,
                kernel_arguments=arguments,
                started_ns=time.time_ns() - round(attempt.seconds * 1e9),
                duration_s=attempt.seconds,
                marks=marks,
                error=self._classified(attempt.error, attempt.phase) if attempt.error else None,
                phase=attempt.phase,
                post_mortem=attempt.post_mortem,
                notes=tuple(notes),
                warm=self._strategy.resets,
                system=identity(console.output()) if console else {},
            )
        )


def classify(error: BaseException, phase: str = "") -> EvmperfError:
    """The kind of failure behind an exception of Labgrid's drivers, as one sentence."""
    sentence = str(error).strip().split("\n")[0] or type(error).__name__
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, EvmperfError):
            return cause
        if isinstance(cause, requests.RequestException):
            what = phase if phase == "reset line" else "power switch"
            if cause.response is None:
                return LabError(
                    f"the {what} does not answer ({type(cause).__name__}): check that it runs and "
                    f"that the board file names it right"
                )
            reasons = cause.response.text.strip().splitlines() or ["no reason given"]
            return LabError(f"the {what} refused with {cause.response.status_code}: {reasons[0][:200]}")
        cause = cause.__cause__
    if phase in ("power switch", "reset line", "console"):
        return LabError(f"{phase}: {sentence}")
    return BoardError(sentence)
