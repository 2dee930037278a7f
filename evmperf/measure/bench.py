"""The runner's interface to a board: shell, U-Boot, power.

These are protocols: Labgrid's side is in `evmperf.lab`; tests and other transports bring their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evmperf.boards.board import Board
from evmperf.boards.console.marks import ObservedBoot


@dataclass(frozen=True)
class StepOutput:
    """Exit status of a step, its files, how long it kept the board busy and the uptime at its begin (both in
    seconds of the board's clock), and the fetches."""

    status: int
    files: dict[str, str]
    busy_s: float
    fetches: int
    uptime_s: float | None = None


@dataclass(frozen=True)
class ShellReply:
    """What a command printed (stdout and stderr together) and its exit status. It unpacks as Labgrid's reply
    does: lines, no lines of stderr, status.
    """

    status: int
    text: str

    def __iter__(self) -> Iterator[object]:
        """The three parts of Labgrid's CommandProtocol."""
        return iter((self.text.splitlines(), [], self.status))


class Files(Protocol):
    """A faster way than the console to a machine's files; it may fail at any time."""

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None on failure."""

    def put(self, path: str, data: bytes) -> bool:
        """Write a file of at most 64 KiB; returns whether that succeeded."""


class Shell(Protocol):
    """A prompt that takes one command at a time."""

    @property
    def files(self) -> Files | None:
        """A faster way for long outputs and commands, None without one."""

    def run(self, command: str, timeout_s: float) -> ShellReply:
        """Run a command; raises ToolError if it hung, BoardError or LabError if the shell is gone."""


class Meter(Protocol):
    """A meter on the board's rails; see docs/power.md."""

    def identity(self) -> str:
        """Manufacturer, model, serial number and back end; raises LabError without an answer."""

    def check(self, rails: Sequence[str]) -> None:
        """Raise LabError with the names of rails that have no channel."""

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage and current (or power) of each rail as the meter's text with unit:
        "+7.5E-01 V", "3 mA", "2250 uW". `evmperf.benchmarks.tools.meter` parses it.

        Raises LabError when the meter does not answer.
        """


class Bench(Protocol):
    """The interface to one board, its tester, meter and power switch."""

    board: Board

    def shell(self) -> Shell:
        """A root shell in Linux; boots the board if necessary."""

    def uboot(self) -> Shell:
        """U-Boot's prompt; power-cycles the board if necessary."""

    def tester(self) -> Shell:
        """A root shell on the tester; raises LabError without one."""

    def meter(self) -> Meter:
        """The meter on the board's rails; raises LabError without one."""

    def cold_boot(self, kernel_arguments: str) -> ObservedBoot:
        """One power cycle and boot, without retries; returns failed boots, too. Raises LabError."""

    def abandon(self) -> None:
        """Mark the board's state as unknown: the next use power-cycles it."""

    def boots(self) -> list[ObservedBoot]:
        """Boots attempted since the last call, in order, including those of `cold_boot`."""


class Clock(Protocol):
    """The time in nanoseconds since the epoch, and monotonic seconds."""

    def time_ns(self) -> int:
        """Now, since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""


class Steps(Protocol):
    """Runs a step in a shell (`evmperf.measure.shellstep`) or reads it from a log, by its label."""

    def install(self, shell: Shell, folder: str = ...) -> None:
        """Make the shell ready."""

    def run(
        self,
        shell: Shell,
        command: str,
        timeout_s: float,
        *,
        quiet: bool = ...,
        folder: str = ...,
        label: str = ...,
    ) -> StepOutput:
        """Exit status and output files of a command."""
