"""Boards as a lab describes them: its env file, its strategy, its drivers, none of them written for evmperf.

What Labgrid is about to build from the file is changed in memory: its serial, shell and U-Boot driver give
way to evmperf's, of the same attributes and protocols. The lab's strategy drives them.
"""

import contextlib
import enum
from collections.abc import Iterable, Mapping
from typing import Any

from labgrid import target_factory
from labgrid.exceptions import InvalidConfigError, NoDriverFoundError, NoStrategyFoundError
from labgrid.protocol import ConsoleProtocol, PowerProtocol
from labgrid.strategy import Strategy
from pexpect import TIMEOUT

from evmperf.boards import prompts
from evmperf.boards.board import Board, classes
from evmperf.boards.console.attempt import NotReached, await_prompt, post_mortem, recent, tell
from evmperf.boards.console.powering import NoSwitch, Overdue, Person, Switch, deadline
from evmperf.lab.bootoptions import BoardState
from evmperf.lab.console import StampedSerialDriver
from evmperf.lab.shell import EvmShellDriver
from evmperf.lab.strategy import Attempts, BootStrategy
from evmperf.model.errors import UsageError, one_line

OURS: Mapping[str, str] = {
    "SerialDriver": "StampedSerialDriver",
    "ShellDriver": "EvmShellDriver",
    "UBootDriver": "EvmUBootDriver",
}
"""Labgrid's drivers, and those of evmperf that do the same faster or with time stamps."""
_STATES: Mapping[BoardState, tuple[str, ...]] = {
    BoardState.off: ("off", "poweroff", "power_off"),
    BoardState.uboot: ("uboot", "u_boot", "bootloader", "barebox"),
    BoardState.shell: ("shell", "linux", "userspace", "login", "ssh"),
}
"""What labs call the states of their strategies, the usual name first."""
_POWER_S = 20
"""How long a power switch may take to tell its state."""
_TRANSITION_S = 900
"""How long a strategy of the lab's may take for one transition."""


def adapt(config: Any, board: Board) -> list[str]:
    """Change what Labgrid's configuration says of a board's target; returns a sentence for each class that is
    not installed here and is left out. The drivers beside a strategy of evmperf's stay as they are.
    """
    main = config.data["targets"][board.target]
    left_out: list[str] = []
    resources = list(_known(main.get("resources"), target_factory.resources, left_out))
    drivers = list(_known(main.get("drivers"), target_factory.drivers, left_out))
    if not any(issubclass(target_factory.drivers[name], BootStrategy) for name, _ in drivers):
        if _serial(drivers):
            drivers = [(OURS.get(name, name), attributes) for name, attributes in drivers]
        if not any(issubclass(target_factory.drivers[name], Strategy) for name, _ in drivers):
            drivers.append((BootStrategy.__name__, {}))
        drivers = [(name, _with_console(name, attributes, drivers)) for name, attributes in drivers]
    main["resources"] = [{name: dict(attributes)} for name, attributes in resources]
    main["drivers"] = [{name: dict(attributes)} for name, attributes in drivers]
    return left_out


def adapt_pytests(stash: Any, board: Board) -> list[str]:
    """The same for the environment that Labgrid's plugin for pytest keeps; nothing without one."""
    from labgrid.pytestplugin.hooks import LABGRID_ENV_KEY  # noqa: PLC0415  # pytest is there only then

    environment = stash.get(LABGRID_ENV_KEY, None)
    return adapt(environment.config, board) if environment else []


def _known(
    entries: Any, registered: Mapping[str, type], left_out: list[str]
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for name, attributes in classes(entries):
        if name in registered:
            yield name, {word: value for word, value in attributes.items() if word != "cls"}
        else:
            left_out.append(f"{name} is not installed here, so it is left out")


_Entries = list[tuple[str, Mapping[str, Any]]]


def _serial(drivers: _Entries) -> bool:
    """Whether the board's console is Labgrid's SerialDriver, and nobody binds just that class."""
    bound = (
        getattr(supplier, "__name__", supplier)
        for name, _ in drivers
        for binding in target_factory.drivers[name].bindings.values()
        for plain in [getattr(binding, "value", binding)]
        for supplier in (plain if isinstance(plain, set) else {plain})
    )
    return any(name == "SerialDriver" for name, _ in drivers) and "SerialDriver" not in bound


def _with_console(name: str, attributes: Mapping[str, Any], drivers: _Entries) -> Mapping[str, Any]:
    """A strategy's attributes; of several consoles it gets the shell's, which Labgrid would not decide."""
    kind = target_factory.drivers[name]
    consoles = [name for name, _ in drivers if issubclass(target_factory.drivers[name], ConsoleProtocol)]
    stated = attributes.get("bindings") or {}
    if not issubclass(kind, Strategy) or "console" not in kind.bindings or len(consoles) < 2:
        return attributes
    for other, theirs in drivers:
        if other.endswith("ShellDriver") and (console := (theirs.get("bindings") or {}).get("console")):
            return {**attributes, "bindings": {"console": console, **stated}}
    return attributes


def strategy_of(target: Any, board: Board) -> Any:
    """The strategy of a target as evmperf drives it: its own as it is, a lab's by LabStrategy.

    Raises UsageError where there is none that can be driven.
    """
    try:
        strategy = target.get_strategy()
    except NoStrategyFoundError:
        raise UsageError(
            f"{board.file_name} has no strategy: add one to {board.target}.drivers, "
            f"K3BootStrategy for TI's boards"
        ) from None
    if isinstance(strategy, BootStrategy):
        strategy.stated = board.sections.get("boot", {})
        return strategy
    return LabStrategy(target, strategy, board)


def states(strategy: Any) -> dict[BoardState, str]:
    """What a strategy calls the states that evmperf knows; without a list of them, their usual names."""
    status = getattr(strategy, "status", None)
    kind = type(status) if isinstance(status, enum.Enum) else _default(strategy)
    names = {state.name.lower(): state.name for state in kind} if kind else {}
    return {
        state: next((names[word] for word in words if word in names), "" if names else words[0])
        for state, words in _STATES.items()
    }


def _default(strategy: Any) -> type[enum.Enum] | None:
    """The enumeration of a strategy, or of a class of one."""
    for field in getattr(strategy, "__attrs_attrs__", ()):
        if field.name == "status" and isinstance(field.default, enum.Enum):
            return type(field.default)
    return None


class LabStrategy(Attempts):
    """A strategy of the lab's own, with what LabgridBench asks of BootStrategy.

    It goes to `off`, `uboot` and `shell` by the lab's `transition`, and knows nothing of kernel arguments.
    """

    resets = ""
    """The lab's power driver makes cold boots."""

    def __init__(self, target: Any, strategy: Any, board: Board) -> None:
        self.target, self._strategy, self._board = target, strategy, board
        self.logger = strategy.logger
        self._names = states(strategy)
        if not self._names[BoardState.shell]:
            raise UsageError(
                f"{board.file_name}: {type(strategy).__name__} has no state called "
                f"{' or '.join(_STATES[BoardState.shell])}, so evmperf cannot ask it for Linux"
            )
        self.console = self._driver(strategy, "console", ConsoleProtocol)
        """None where no time of a boot can be taken from it."""
        if not isinstance(self.console, StampedSerialDriver):
            self.console = None
        self.power = self._driver(strategy, "power", PowerProtocol)
        self.shell = self._driver(strategy, "shell", "ShellDriver")
        self.uboot = self._driver(strategy, "uboot", "UBootDriver")
        self.ssh = self._driver(strategy, "ssh", "SSHDriver")
        self._begin()
        self.status, self.medium = BoardState.unknown, ""
        self.retries = 1
        self.silence_timeout, self.uboot_timeout, self.kernel_timeout = 20, 60, 60
        self.boot_timeout = _TRANSITION_S
        self.way = Switch(self.power, self.console, _POWER_S) if self.power else NoSwitch("none")
        if isinstance(self.shell, EvmShellDriver) and self.console:
            self.shell.before_login = self._await_prompt

    def _driver(self, strategy: Any, name: str, kind: Any) -> Any:
        """What the strategy binds by a usual name, else what the target has of a kind; None without."""
        driver = getattr(strategy, name, None)
        if driver and (not isinstance(kind, type) or isinstance(driver, kind)):
            return driver
        with contextlib.suppress(NoDriverFoundError, InvalidConfigError, KeyError):
            return self.target.get_driver(kind, activate=False)
        return None

    def take_person(self, person: Person) -> None:
        """The lab's power driver asks a person by itself."""

    def prompt_after(self, kernel_arguments: str) -> str:
        """The regular expression of what ends a boot."""
        shell = self.shell
        return prompts.ending(shell.login_prompt, shell.prompt) if shell else prompts.LOGIN_PROMPT

    def force(self, status: str) -> None:
        """Take the board to be at a state, of evmperf's name or the lab's, as Labgrid does for
        `--lg-initial-state`; raises KeyError for another, UsageError where the lab's strategy cannot.
        """
        by_name = {name: state for state, words in _STATES.items() for name in (*words, self._names[state])}
        self.status = by_name[status]
        try:
            self._strategy.force(self._names[self.status] or status)
        except NotImplementedError:
            raise UsageError(
                f"{self._board.file_name}: {type(self._strategy).__name__} has no `force`, which "
                f"--lg-initial-state needs: leave it out, and the board is booted"
            ) from None

    def transition(self, status: BoardState | str) -> None:
        """Bring the board to a state; raises BootError. Every attempt is kept in `attempts`."""
        goal = status if isinstance(status, BoardState) else BoardState[status]
        if self._is_at(goal):
            return
        if self.kernel_arguments:
            raise UsageError(
                f"{self._board.file_name}: {type(self._strategy).__name__} takes no kernel arguments; "
                f"K3BootStrategy does"
            )
        self._try(goal, self._reach)

    def _is_at(self, goal: BoardState) -> bool:
        if self.status is not goal:
            return goal is BoardState.booted and self.status is BoardState.shell
        if goal is BoardState.shell:
            return bool(self.link.is_up() if self.link else self.shell and self.shell.get_status() == 1)
        return True

    def _reach(self, goal: BoardState) -> None:
        for guard in self.guards:
            guard()
        if goal in (BoardState.off, BoardState.provisioned):
            self._off()
            if goal is BoardState.provisioned:
                self._provision()
            return
        self.attempts[-1].boots = bool(self.console and self.power)
        if self.attempts[-1].boots and self.status is not BoardState.provisioned:
            self._off()
            self._provision()
        is_uboot = goal is BoardState.uboot
        self._phase = "U-Boot prompt" if is_uboot else "shell prompt"
        self._go(goal if is_uboot else BoardState.shell)
        tell(self.console, "stage", "settle" if is_uboot else "arrive")
        if self.link and not is_uboot:
            self.link.connect(self.boot_timeout)
        self.status = goal if is_uboot else BoardState.shell

    def _await_prompt(self) -> None:
        """Wait for the end of a boot without typing, so that the prompt's time is the board's own."""
        if self.attempts and self.attempts[-1].boots:
            await_prompt(self.console, self.prompt_after(""), self.silence_timeout, self.boot_timeout)

    def _off(self) -> None:
        self.status = BoardState.unknown
        if self._names[BoardState.off]:
            self._go(BoardState.off)
        elif self.power:
            with deadline(_TRANSITION_S, "the power switch has not answered"):
                self.target.activate(self.power)
                self.power.off()
        else:
            raise UsageError(f"{self._board.file_name} has no power driver: nothing can switch the board off")
        self.status = BoardState.off

    def _provision(self) -> None:
        if self.console:  # it keeps what the board says from the first byte on
            self.target.activate(self.console)
        super()._provision()

    def _go(self, state: BoardState) -> None:
        name, kind = self._names[state], type(self._strategy).__name__
        if not name:
            raise UsageError(f"{kind} has no state like {_STATES[state][0]}")
        try:
            with deadline(_TRANSITION_S, f"the lab's {kind} has not come to {name}"):
                self._strategy.transition(name)
        except TIMEOUT as error:
            what = str(error) if isinstance(error, Overdue) else f"{kind} timed out"
            raise NotReached(what, recent(self.console)) from error
        except TypeError as error:  # a transition that wants more than a state
            raise UsageError(f"{kind}.transition cannot be called with a state: {one_line(error)}") from error

    def post_mortem(self) -> str:
        """The last lines of the console, as text."""
        return post_mortem("as the lab's driver left it", self.console)
