"""Labgrid strategy for boards with U-Boot and Linux: off, U-Boot prompt, Linux, logged in.

One class for all boards; what differs is in the board's file. It binds whatever implements
Labgrid's protocols, and uses what evmperf's console can do beyond that where it is one. A board
may have no power switch, or no console. docs/boot.md has the state diagram.
"""

import enum
import functools
import time

import attr
from labgrid.factory import target_factory
from labgrid.step import step
from labgrid.strategy import Strategy, StrategyError
from pexpect import TIMEOUT

from evmperf.boards import prompts
from evmperf.console import booted, powering, uboot
from evmperf.console.attempt import Attempt, await_prompt, post_mortem, recent, tell
from evmperf.console.diagnosis import CameBack, NotReached
from evmperf.console.person import Person
from evmperf.model.errors import Stopped, UsageError, was_ctrl_c

_ASK_AGAIN_S = 5
_OFF_S = 2.0
"""How long the power is off where its driver does not say."""
_SHUT_DOWN_S = 120
"""How long Linux may take to end its services before it resets the board."""


class Status(enum.Enum):
    """What the board is known to be doing."""

    unknown = 0
    off = 1
    uboot = 2
    booted = 3
    shell = 4
    provisioned = 5
    """Off, and what has to be done before power-on is done."""


class BootError(StrategyError):
    """The board did not reach the state that was asked for, in all its attempts."""


@target_factory.reg_driver
@attr.s(eq=False)
class K3BootStrategy(Strategy):
    """Power-cycles the board and takes it to U-Boot's prompt, to Linux, or to a root shell.

    Args:
        medium: what to boot from; default is options.boot.medium of the board file
        media: U-Boot commands that choose each medium, before `boot_command`; the defaults are for
            media that hold a whole image of TI's (root in the second partition)
        kernel_arguments_variable: U-Boot variable whose words join the kernel's command line
        roots: regular expressions of what the root of the running system is like for each medium
            (evmperf.console.booted has the defaults); a medium without one is not checked
        login_prompt, init_shell_prompt: what ends a boot, as regular expressions
        silence_timeout: seconds without a byte after which a boot loader is taken to hang, and
            after which a newline asks Linux for its prompt again
        power_timeout, uboot_timeout, kernel_timeout, boot_timeout: seconds for the power switch,
            from power-on to the U-Boot prompt, from the boot command to "Starting kernel", and
            from there to the prompt
        hand_timeout: seconds for a person who works the power
        retries: power cycles after a failed boot before giving up

    options.boot.power of the board file says how the power is worked where its drivers do not:
    `reset` is `reboot` and U-Boot's `reset`, `none` leaves the board as it is found.
    """

    bindings = {  # noqa: RUF012  # Labgrid's form
        "power": {"PowerProtocol", None},
        "console": {"ConsoleProtocol", None},
        "uboot": {"UBootDriver", None},
        "shell": {"ShellDriver", None},
        "ssh": {"SSHDriver", None},
    }

    status = attr.ib(default=Status.unknown)
    medium = attr.ib(default="", validator=attr.validators.instance_of(str))
    media = attr.ib(
        default=attr.Factory(lambda: {name: [*words] for name, words in prompts.MEDIA.items()}),
        validator=attr.validators.deep_mapping(
            attr.validators.instance_of(str), attr.validators.instance_of(list)
        ),
    )
    boot_command = attr.ib(default=prompts.BOOT_COMMAND, validator=attr.validators.instance_of(str))
    kernel_arguments_variable = attr.ib(
        default=prompts.KERNEL_ARGUMENTS_VARIABLE, validator=attr.validators.instance_of(str)
    )
    kernel_start = attr.ib(
        default=r"Starting kernel|EFI stub: |Linux version \d", validator=attr.validators.instance_of(str)
    )
    roots = attr.ib(
        default=attr.Factory(lambda: dict(booted.ROOTS)), validator=attr.validators.instance_of(dict)
    )
    silence_timeout = attr.ib(default=20, validator=attr.validators.instance_of(int))
    login_prompt = attr.ib(default=prompts.LOGIN_PROMPT, validator=attr.validators.instance_of(str))
    init_shell_prompt = attr.ib(default=prompts.INIT_SHELL_PROMPT, validator=attr.validators.instance_of(str))
    uboot_timeout = attr.ib(default=60, validator=attr.validators.instance_of(int))
    power_timeout = attr.ib(default=60, validator=attr.validators.instance_of(int))
    kernel_timeout = attr.ib(default=60, validator=attr.validators.instance_of(int))
    boot_timeout = attr.ib(default=180, validator=attr.validators.instance_of(int))
    hand_timeout = attr.ib(default=600, validator=attr.validators.instance_of(int))
    retries = attr.ib(default=2, validator=attr.validators.instance_of(int))

    def __attrs_post_init__(self):
        """Start with no knowledge of the board."""
        super().__attrs_post_init__()
        self.attempts = []
        self.listeners = []  # called with each attempt when it ends, before the next one begins
        self.guards = []  # called before each action of the power switch; may raise
        self.before_power_on = []  # called with the power off: cards are switched, images written
        self.kernel_arguments = ""
        self.uboot_variables = {}  # set before each boot, never saved
        self._booted_with = ""
        self._phase = ""
        self.link = None  # evmperf's way to the board over SSH, where that is the only one
        self.take_person(Person())
        if not self.uboot:
            return
        # A prompt begins its line (`crc32` prints "==> "); a space stops the countdown everywhere.
        if not self.uboot.prompt.startswith(("[", "(", "^")):
            self.uboot.prompt = rf"[\r\n]{self.uboot.prompt}"
        if self.uboot.autoboot == "stop autoboot" and self.uboot.interrupt == "\n":
            self.uboot.autoboot, self.uboot.interrupt = "(?:stop|abort) autoboot", " "

    @step(args=["status"])
    def transition(self, status):
        """Bring the board to `status`; raises BootError after the last failed attempt.

        Costs nothing when the board is there already. Every attempt is kept in `attempts`.
        """
        goal = status if isinstance(status, Status) else Status[status]
        if goal is Status.unknown:
            raise StrategyError("a board cannot be brought to an unknown state")
        if self._is_at(goal):
            return
        for tries_left in range(self.retries, -1, -1):
            attempt = Attempt(goal.name, time.monotonic())
            self.attempts.append(attempt)
            try:
                self._reach(goal)
            except Exception as error:  # drivers raise all kinds; each is recorded
                if was_ctrl_c(error):
                    raise KeyboardInterrupt from error
                if isinstance(error, Stopped):
                    attempt.error = error
                    self._finish(attempt)
                    raise BootError(str(error)) from error
                self._record_failure(attempt, error)
                if not tries_left or getattr(error, "permanent", False):
                    raise BootError(attempt.sentence()) from error
            else:
                self._finish(attempt)
                return

    def take_person(self, person):
        """Have this person asked where the power is worked by hand."""
        how = self._option("power")
        if how in ("none", "reset") or not self.power:
            self.way = powering.NoSwitch(how)
        elif type(self.power).__name__ == "ManualPowerDriver":
            self.way = powering.Hand(self.console, person, self.hand_timeout)
        else:
            self.way = powering.Switch(self.power, self.console, self.power_timeout)

    @property
    def resets(self):
        """Whether boots are resets by software: warm ones."""
        return getattr(self.way, "how", "") == "reset"

    def forget(self):
        """Say that the board is in no known state: the next transition power-cycles it."""
        self.status = Status.unknown

    def force(self, status):
        """Take the board to be at `status`, as `--lg-initial-state` says; nothing is switched.

        For `uboot` and `shell` the prompt must be there, or the shell's login.
        """
        goal = status if isinstance(status, Status) else Status[status]
        if self.console:
            self.target.activate(self.console)
        if goal is Status.uboot:
            self.target.activate(self.uboot)
            tell(self.console, "settle")
        elif goal is Status.shell:
            self._log_in()
        self._booted_with = self.kernel_arguments
        self.status = goal

    def prompt_after(self, kernel_arguments):
        """The regular expression of what ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt

    def _is_at(self, goal):
        if self.status is not goal:
            return False
        if goal in (Status.booted, Status.shell) and self._booted_with != self.kernel_arguments:
            return False
        if goal is Status.shell and not self.shell:
            return self.link.is_up()
        return goal is not Status.shell or self.shell.get_status() == 1

    def _reach(self, goal):
        if goal is Status.off:
            self._switch_off()
            return
        if goal is Status.provisioned:
            self._provision()
            return
        leaves_power = isinstance(self.way, powering.NoSwitch) and not self.resets
        if goal is Status.shell and (leaves_power or not self.console):
            self._take_as_found()
        elif not (goal is Status.shell and self._is_at(Status.booted)):
            if self.status is not Status.uboot:
                self._start_uboot()
            if goal is Status.uboot:
                return
            self._boot_linux()
        if goal is Status.shell and self.status is not Status.shell:
            self._log_in()

    def _take_as_found(self):
        """Nothing is switched: the board runs, or somebody has to see to it."""
        if not self.console:
            self._phase = "connection over SSH"
            # Whoever was connected and trusts the board no more wants it to boot anew.
            self.link.connect(self.boot_timeout, reset=self.resets)
        else:
            self._phase = "console"
            self.target.activate(self.console)
            self._release_shells()
            tell(self.console, "arrive")

    def _log_in(self):
        self._phase = "shell prompt"
        if self.shell:
            self.target.activate(self.shell)
        self.status = Status.shell

    def _switch_off(self):
        self._switch("off")
        self._release_shells()
        self.status = Status.off

    def _provision(self):
        self._switch_off()
        self._phase = "provisioning"
        for prepare in self.before_power_on:
            prepare()
        self.status = Status.provisioned

    def _switch(self, action, *arguments):
        """Work the board's power."""
        self._phase = "power switch"
        if self.power:
            self.target.activate(self.power)
        for guard in self.guards:
            guard()
        return getattr(self.way, action)(*arguments)

    def _start_uboot(self):
        self.status = Status.unknown
        self._phase = "console"
        if not self.console:
            raise UsageError("this board file has no console: U-Boot and boot times need one")
        self.target.activate(self.console)
        self.uboot.login_timeout = self.uboot_timeout
        self.attempts[-1].boots = True
        if self.resets:
            self._reset()
            self.uboot.login_timeout += _SHUT_DOWN_S
        else:
            self._release_shells()
            # Not `cycle`: some drivers do it in one request, and nobody sees when the power comes.
            self._provision()
            self.status = Status.unknown
            time.sleep(getattr(self.power, "delay", _OFF_S))
            self._switch("on", self.silence_timeout)
        self._phase = "U-Boot prompt"
        try:
            self.target.activate(self.uboot)
        except TIMEOUT:
            # The first character typed after a stopped countdown may be lost: ask once more.
            self.uboot.login_timeout = _ASK_AGAIN_S
            try:
                self.target.activate(self.uboot)
            except TIMEOUT:
                raise self._not_reached(self.uboot_timeout) from None
        tell(self.console, "settle")
        self.status = Status.uboot

    def _reset(self):
        """Reset the board by what runs on it."""
        self._phase = "reset by software"
        for guard in self.guards:
            guard()
        self._release_shells()
        log_in = functools.partial(self.target.activate, self.shell)
        powering.reset(self.console, self.uboot.prompt, self.login_prompt, log_in)
        self.target.deactivate(self.shell)

    def _boot_linux(self):
        self._phase = "U-Boot command"
        self.attempts[-1].boots = True
        environment = {}
        if self.kernel_arguments:
            environment = uboot.parse("\n".join(self.uboot.run_check("printenv")))
        # Always set, so that the arguments of the boot before do not stay where U-Boot keeps them.
        setting, *scripts = uboot.arguments_commands(
            environment, self.kernel_arguments_variable, self.kernel_arguments
        )
        commands = [*self.media.get(self._medium(), []), setting]
        commands += [f"setenv {name} '{value}'" for name, value in self.uboot_variables.items()]
        self.uboot.run_check("; ".join(commands))
        for script in scripts:
            self.uboot.run_check(script)
        self.status = Status.unknown
        self._phase = "kernel start"
        tell(self.console, "limit_silence", self.silence_timeout)
        self.console.sendline(self.boot_command)
        ends = [self.kernel_start, self.uboot.prompt]
        try:
            back = self.console.expect(ends, timeout=self.kernel_timeout)[0]
        except TIMEOUT:
            raise self._not_reached(self.kernel_timeout) from None
        if back:
            raise CameBack(self.boot_command, recent(self.console))
        tell(self.console, "limit_silence", 0)
        self._phase = "login prompt"
        prompt = self.prompt_after(self.kernel_arguments)
        await_prompt(self.console, prompt, self.silence_timeout, self.boot_timeout)
        tell(self.console, "arrive")
        self.target.deactivate(self.uboot)
        self._booted_with = self.kernel_arguments
        self.status = Status.booted
        self._phase = "check of what booted"
        self._check_boot(environment)

    def _not_reached(self, seconds):
        return NotReached(f"no {self._phase} within {seconds} s", recent(self.console))

    def _check_boot(self, environment):
        """Raise WrongBoot unless medium and kernel arguments are those that were asked for."""
        medium, arguments = self._medium(), self.kernel_arguments
        root = self.roots.get(medium, "")
        if not (root or arguments):
            return
        system = booted.on_console(self.console)
        if root and system.root is None and booted.is_android(system):
            root = ""
            tell(self.console, "note", f"nobody checked that it booted from {medium}: Android does not say")
        if (root and system.root is None) or (arguments and system.arguments is None):
            system = self._ask_system()
        scripts = uboot.overwriting(environment, self.kernel_arguments_variable)
        if complaint := booted.complaint(medium, root, arguments, system, scripts):
            raise complaint

    def _ask_system(self):
        if "init=" in self.kernel_arguments:
            return booted.asked(self.console)
        self._log_in()
        return booted.answered("\n".join(self.shell.run(booted.QUESTION)[0]))

    def _medium(self):
        return self.medium or self._option("medium")

    def _option(self, key):
        """An option of the board file's section `boot`."""
        env = self.target.env
        boot = env.config.get_target_option(self.target.name, "boot", {}) if env else {}
        return boot.get(key, "")

    def _release_shells(self):
        for driver in (self.shell, self.uboot):
            if driver:
                self.target.deactivate(driver)

    def _finish(self, attempt):
        attempt.seconds = time.monotonic() - attempt.began
        for listener in self.listeners:
            listener(attempt)

    def _record_failure(self, attempt, error):
        self.status = Status.unknown
        attempt.phase = self._phase
        attempt.error = error
        attempt.post_mortem = self.post_mortem()
        self.logger.error("%s\n%s", attempt.sentence(), attempt.post_mortem)
        self._finish(attempt)

    def post_mortem(self):
        """Power state and the last lines of the console, as text."""
        try:
            power = self._switch("state")
        except Exception as error:  # noqa: BLE001  # whatever the switch says is worth keeping
            power = f"unknown ({str(error).splitlines()[0] if str(error) else error!r})"
        return post_mortem(power, self.console)
