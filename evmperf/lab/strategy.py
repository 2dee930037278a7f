"""Labgrid strategies for boards with U-Boot and Linux: off, U-Boot prompt, Linux, logged in.

One class for all boards; what differs is in the board's file. It binds whatever implements
Labgrid's protocols, and uses what evmperf's console can do beyond that where it is one. A board
may have no power switch, or no console. docs/boot.md has the state diagram.
"""

import functools
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import attr
from labgrid.factory import target_factory
from labgrid.step import step
from labgrid.strategy import StrategyError
from pexpect import TIMEOUT

from evmperf.boards import prompts
from evmperf.boards.console import booted, powering
from evmperf.boards.console.attempt import (
    Attempt,
    CameBack,
    NotReached,
    await_prompt,
    post_mortem,
    recent,
    tell,
)
from evmperf.boards.console.powering import Person
from evmperf.lab.bootoptions import MEDIA, BoardState, BootOptions
from evmperf.model.errors import Stopped, UsageError, was_ctrl_c

_ASK_AGAIN_S = 5
_OFF_S = 2.0
"""How long the power is off where its driver does not say."""
_IN_FLIGHT_S = 5.0
"""How long console servers may go on delivering what the board said before its power went."""
_SHUT_DOWN_S = 120
"""How long Linux may take to end its services before it resets the board."""


class BootError(StrategyError):  # type: ignore[misc]
    """The board did not reach the state that was asked for, in all its attempts."""


class Attempts:
    """Tries to bring a board to a state: each is kept, and as many as `retries` follow one that failed."""

    retries: int
    logger: logging.Logger

    def _begin(self) -> None:
        self.attempts: list[Attempt] = []
        self.listeners: list[Callable[[Attempt], None]] = []
        """Called with each attempt when it ends, before the next one begins."""
        self.guards: list[Callable[[], None]] = []
        """Called before each action of the power switch; may raise."""
        self.before_power_on: list[Callable[[], None]] = []
        """Called with the power off: cards are switched, images written."""
        self.kernel_arguments = ""
        self.uboot_variables: dict[str, str] = {}
        """Set before each boot, never saved."""
        self.link: Any = None
        """evmperf's way to the board over SSH, where that is the only one."""
        self._phase = ""

    def forget(self) -> None:
        """Say that the board is in no known state: the next transition power-cycles it."""
        self.status = BoardState.unknown

    def post_mortem(self) -> str:
        """Power state and the last lines of the console, as text."""
        raise NotImplementedError

    def _try(self, goal: BoardState, reach: Callable[[BoardState], None]) -> None:
        """Call `reach` until it returns; raises BootError."""
        for tries_left in range(self.retries, -1, -1):
            attempt = Attempt(goal.name, time.monotonic())
            self.attempts.append(attempt)
            self._phase = ""
            try:
                reach(goal)
            except Exception as error:  # drivers raise all kinds; each is recorded
                if was_ctrl_c(error):
                    raise KeyboardInterrupt from error
                attempt.error, attempt.phase = error, self._phase
                if isinstance(error, Stopped):
                    attempt.boots = False  # nobody switched the board
                else:
                    self.forget()
                    attempt.post_mortem = self.post_mortem()
                    self.logger.error("%s\n%s", attempt.sentence(), attempt.post_mortem)
                self._finish(attempt)
                if not tries_left or isinstance(error, UsageError) or getattr(error, "permanent", False):
                    raise BootError(attempt.sentence()) from error
            else:
                self._finish(attempt)
                return

    def _finish(self, attempt: Attempt) -> None:
        attempt.seconds = time.monotonic() - attempt.began
        for listener in self.listeners:
            listener(attempt)

    def _provision(self) -> None:
        self._phase = "provisioning"
        for prepare in self.before_power_on:
            prepare()
        self.status = BoardState.provisioned


@target_factory.reg_driver
@attr.s(eq=False)
class BootStrategy(Attempts, BootOptions):
    """Power-cycles the board and takes it to U-Boot's prompt, to Linux, or to a root shell.

    options.boot.power of the board file says how the power is worked where its drivers do not:
    `reset` is a reset line, where a driver of ResetProtocol stands beside, or `reboot` and U-Boot's
    `reset`; `none` leaves the board as it is found.
    """

    def __attrs_post_init__(self) -> None:
        """Start with no knowledge of the board."""
        super().__attrs_post_init__()
        self._begin()
        self._booted_with = ""
        self.take_person(Person())
        if not self.uboot:
            return
        # A prompt begins its line (`crc32` prints "==> "); a space stops the countdown everywhere.
        if not self.uboot.prompt.startswith(("[", "(", "^")):
            self.uboot.prompt = rf"[\r\n]{self.uboot.prompt}"
        if self.uboot.autoboot == "stop autoboot" and self.uboot.interrupt == "\n":
            self.uboot.autoboot, self.uboot.interrupt = "(?:stop|abort) autoboot", " "

    @step(args=["status"])  # type: ignore[untyped-decorator]
    def transition(self, status: BoardState | str) -> None:
        """Bring the board to `status`; raises BootError. Every attempt is kept in `attempts`."""
        goal = status if isinstance(status, BoardState) else BoardState[status]
        if goal is BoardState.unknown:
            raise StrategyError("a board cannot be brought to an unknown state")
        if self._is_at(goal):
            return
        self._try(goal, self._reach)

    def take_person(self, person: Person) -> None:
        """Have this person asked where the power is worked by hand."""
        # Labgrid's power drivers offer to be a reset line as well.
        line = self.reset_line if self.reset_line is not self.power else None
        how = self.option("power") or ("reset" if line and not self.power else "")
        if how in ("none", "reset") or not self.power:
            self.way: powering.Way = powering.NoSwitch(how, line, self.power_timeout)
        elif type(self.power).__name__ == "ManualPowerDriver":
            self.way = powering.Hand(self.console, person, self.hand_timeout)
        else:
            self.way = powering.Switch(self.power, self.console, self.power_timeout)

    @property
    def resets(self) -> str:
        """How boots are made that are warm ones, "" for cold ones and none."""
        if not isinstance(self.way, powering.NoSwitch) or self.way.how != "reset":
            return ""
        return f"a warm boot{' by reset line' if self.way.line else ''}"

    def force(self, status: BoardState | str) -> None:
        """Take the board to be at `status` (`--lg-initial-state`) if its prompt or login is there."""
        goal = status if isinstance(status, BoardState) else BoardState[status]
        if self.console:
            self.target.activate(self.console)
        if goal is BoardState.uboot:
            self.target.activate(self.uboot)
            tell(self.console, "stage", "settle")
        elif goal is BoardState.shell:
            self._log_in()
        self._booted_with = self.kernel_arguments
        self.status = goal

    def _is_at(self, goal: BoardState) -> bool:
        linux = goal in (BoardState.booted, BoardState.shell)
        if self.status is not goal or (linux and self._booted_with != self.kernel_arguments):
            return False
        if goal is not BoardState.shell:
            return True
        return bool(self.shell.get_status() == 1 if self.shell else self.link.is_up())

    def _reach(self, goal: BoardState) -> None:
        if goal in (BoardState.off, BoardState.provisioned):
            self._switch_off()
            if goal is BoardState.provisioned:
                self._provision()
            return
        leaves_power = isinstance(self.way, powering.NoSwitch) and not self.resets
        if goal is BoardState.shell and (leaves_power or not self.console):
            self._take_as_found()
        elif not (goal is BoardState.shell and self._is_at(BoardState.booted)):
            if self.status is not BoardState.uboot:
                self._start_uboot(goal)
            if goal is BoardState.uboot:
                return
            if not self.flow:
                self._boot_linux()
        if goal is BoardState.shell and self.status is not BoardState.shell:
            self._log_in()

    def _take_as_found(self) -> None:
        """Nothing is switched: the board runs, or somebody has to see to it."""
        if not self.console:
            self._phase = "connection over SSH"
            # Whoever was connected and trusts the board no more wants it to boot anew.
            resets = bool(self.resets) and self.link.shell is not None
            self.attempts[-1].boots = resets
            reset = self._pulse if self.way.line else self.link.reboot
            self.link.connect(self.boot_timeout, reset=reset if resets else None)
        else:
            self._phase = "console"
            self.target.activate(self.console)
            self._release_shells()
            tell(self.console, "stage", "arrive")

    def _log_in(self) -> None:
        self._phase = "shell prompt"
        if self.shell:
            self.target.activate(self.shell)
        self.status = BoardState.shell

    def _switch_off(self) -> None:
        self._switch("off")
        self._release_shells()
        self.status = BoardState.off

    def _switch(self, action: str, *arguments: Any) -> Any:
        """Work the board's power, or its reset line."""
        self._phase = "reset line" if action == "pulse" else "power switch"
        if self.power:
            self.target.activate(self.power)
        for guard in self.guards:
            guard()
        return getattr(self.way, action)(*arguments)

    @property
    def flow(self) -> str:
        """What starts Linux instead of U-Boot (options.boot.flow): `falcon`, `sbl`, or `other` where the file
        has no U-Boot driver; "" for U-Boot.
        """
        return self.option("flow") or ("" if self.uboot else "other")

    def _start_uboot(self, goal: BoardState) -> None:
        if not self.console:
            raise UsageError("this board file has no console: U-Boot and boot times need one")
        if self.flow and (goal is BoardState.uboot or self.kernel_arguments):
            raise UsageError(
                f"options.boot.flow is {self.flow}, so this board has no U-Boot, whose prompt and kernel "
                f"arguments this needs: measure `boot_time default_rootfs`, or boot an image with U-Boot"
            )
        self.status = BoardState.unknown
        self._phase = "console"
        self.target.activate(self.console)
        within = self.uboot_timeout
        self.attempts[-1].boots = True
        if self.resets:
            within += self._reset()
        else:
            self._release_shells()
            # Not `cycle`: some drivers do it in one request, and nobody sees when the power comes.
            self._switch_off()
            self._provision()
            self.status = BoardState.unknown
            time.sleep(getattr(self.power, "delay", _OFF_S))
            tell(self.console, "fall_silent", _IN_FLIGHT_S)
            self._switch("on", self.silence_timeout, *([""] if self.flow else []))
        if self.flow:
            self._await_linux(within + self.kernel_timeout, {})
            return
        self._phase = "U-Boot prompt"
        # The first character typed after a stopped countdown may be lost: ask once more.
        for seconds in (within, _ASK_AGAIN_S):
            self.uboot.login_timeout = seconds
            try:
                self.target.activate(self.uboot)
                break
            except TIMEOUT:
                continue
        else:
            raise self._not_reached(within)
        tell(self.console, "stage", "settle")
        self.status = BoardState.uboot

    def _pulse(self) -> None:
        """Reset the board by its line."""
        before = self._phase
        self.target.activate(self.reset_line)
        self._switch("pulse", self.console)
        self._phase = before

    def _reset(self) -> int:
        """Reset the board by its line or by what runs on it; returns the seconds that this may take."""
        self._release_shells()
        if self.way.line:
            self._pulse()
            return 0
        self._phase = "reset by software"
        for guard in self.guards:
            guard()
        log_in = functools.partial(self.target.activate, self.shell)
        powering.reset(self.console, self.uboot.prompt, self.login_prompt, log_in)
        self.target.deactivate(self.shell)
        return _SHUT_DOWN_S

    def _boot_linux(self) -> None:
        self._phase = "U-Boot command"
        self.attempts[-1].boots = True
        environment: Mapping[str, str] = {}
        if self.kernel_arguments:
            environment = booted.variables("\n".join(self.uboot.run_check("printenv")))
        # Always set, so that the arguments of the boot before do not stay where U-Boot keeps them.
        setting, *scripts = booted.arguments_commands(
            environment, self.kernel_arguments_variable, self.kernel_arguments
        )
        commands = [*self.media.get(self.chosen_medium(), []), setting]
        commands += [f"setenv {name} '{value}'" for name, value in self.uboot_variables.items()]
        self.uboot.run_check("; ".join(commands))
        for script in scripts:
            self.uboot.run_check(script)
        self.status = BoardState.unknown
        tell(self.console, "stage", "", self.silence_timeout)
        self.console.sendline(self.boot_command)
        self._await_linux(self.kernel_timeout, environment)

    def _await_linux(self, within_s: int, environment: Mapping[str, str]) -> None:
        """Wait for the kernel's start and for the end of the boot."""
        self._phase = "kernel start"
        prompt = self.prompt_after(self.kernel_arguments)
        # A kernel that is quiet and has no U-Boot before it says nothing until then.
        ends = [self.kernel_start, prompt if self.flow else self.uboot.prompt]
        try:
            back = self.console.expect(ends, timeout=within_s)[0]
        except TIMEOUT:
            raise self._not_reached(within_s) from None
        if back and not self.flow:
            raise CameBack(self.boot_command, recent(self.console))
        tell(self.console, "stage", "")
        self._phase = "login prompt"
        if not back:
            await_prompt(self.console, prompt, self.silence_timeout, self.boot_timeout)
        tell(self.console, "stage", "arrive")
        if self.uboot:
            self.target.deactivate(self.uboot)
        self._booted_with = self.kernel_arguments
        self.status = BoardState.booted
        self._phase = "check of what booted"
        self._check_boot(environment)

    def _not_reached(self, seconds: int) -> NotReached:
        return NotReached(f"no {self._phase} within {seconds} s", recent(self.console))

    def _check_boot(self, environment: Mapping[str, str]) -> None:
        """Raise WrongBoot unless medium and kernel arguments are those that were asked for."""
        medium, arguments = self.chosen_medium(), self.kernel_arguments
        root = self.roots.get(medium, "")
        if not (root or arguments):
            return
        system = booted.on_console(self.console)
        # Android's shell may not read what QUESTION asks.
        if root and system.root is None and "androidboot." in (system.arguments or ""):
            root = ""
            note = f"the boot from {medium} was not checked: Android does not report its medium"
            tell(self.console, "note", note)
        if (root and system.root is None) or (arguments and system.arguments is None):
            if "init=" in arguments:
                system = booted.asked(self.console)
            else:
                self._log_in()
                system = booted.answered("\n".join(self.shell.run(booted.QUESTION)[0]))
        scripts = booted.overwriting(environment, self.kernel_arguments_variable)
        if complaint := booted.complaint(medium, root, arguments, system, scripts):
            raise complaint

    def _release_shells(self) -> None:
        for driver in (self.shell, self.uboot):
            if driver:
                self.target.deactivate(driver)

    def post_mortem(self) -> str:
        """Power state and the last lines of the console, as text."""
        try:
            power = self._switch("state")
        except Exception as error:  # noqa: BLE001  # whatever the switch says is worth keeping
            power = f"unknown ({str(error).splitlines()[0] if str(error) else error!r})"
        return post_mortem(power, self.console)


@target_factory.reg_driver
@attr.s(eq=False)
class K3BootStrategy(BootStrategy):
    """The same with the media of TI's U-Boot: whole images, root in the second partition."""

    media: dict[str, list[str]] = attr.ib(
        factory=lambda: {name: [*words] for name, words in prompts.MEDIA.items()}, validator=MEDIA
    )
