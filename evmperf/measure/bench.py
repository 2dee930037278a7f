"""What a benchmark's runner may touch: the board's shell, its U-Boot, and its power.

These are protocols: Labgrid's side is in `evmperf.lab`; tests and other transports bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evmperf.boards.board import Board
from evmperf.console.boot import Boot


@dataclass(frozen=True)
class StepOutput:
    """Exit status of a step, its output files, how often they had to be fetched, and how long the
    board was busy with it (seconds, on the board's own clock).
    """

    status: int
    files: dict[str, str]
    busy_s: float
    fetches: int


@dataclass(frozen=True)
class Reply:
    """What a command printed (stdout and stderr together) and its exit status."""

    status: int
    text: str


class Files(Protocol):
    """A faster way than the console to a machine's files; it may fail at any time."""

    def get(self, path: str) -> bytes | None:
        """A file's bytes, None where they do not come."""

    def put(self, path: str, data: bytes) -> bool:
        """Write a file of at most 64 KiB; whether it is there."""


class Shell(Protocol):
    """A prompt that takes one command at a time."""

    @property
    def files(self) -> Files | None:
        """What long outputs and commands take instead, None where there is nothing beside."""

    def run(self, command: str, timeout_s: float) -> Reply:
        """Run a command; raises ToolError when it hangs and was interrupted, BoardError or
        LabError when the shell is gone.
        """


class Meter(Protocol):
    """Something that measures the board's rails; see docs/power.md."""

    def identity(self) -> str:
        """Maker, model, serial number and back end; raises LabError when it does not answer."""

    def check(self, rails: Sequence[str]) -> None:
        """Raise LabError that names the rails which it is not connected to."""

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage and current (or power) of each rail now, as the meter says them, with unit:
        "+7.5E-01 V", "3 mA", "2250 uW". What they are worth is for `evmperf.tools.meter` to say.

        Raises LabError when the meter does not answer.
        """


class Bench(Protocol):
    """The interface to one board, its tester, meter and power switch."""

    board: Board

    def shell(self) -> Shell:
        """A root shell in Linux, booting the board if it is not there."""

    def uboot(self) -> Shell:
        """U-Boot's prompt, power-cycling the board if it is not there."""

    def tester(self) -> Shell:
        """A root shell on the machine beside the board; raises LabError when there is none."""

    def meter(self) -> Meter:
        """The meter on the board's rails; raises LabError when there is none."""

    def cold_boot(self, kernel_arguments: str) -> Boot:
        """One power cycle and boot to the prompt, without retries; a failed boot is returned.

        Raises LabError when it is the lab that failed.
        """

    def abandon(self) -> None:
        """Trust nothing about the board's state any more: the next use power-cycles it."""

    def boots(self) -> list[Boot]:
        """Boots attempted since the last call, in order, `cold_boot`'s among them."""


class Clock(Protocol):
    """The time of day in nanoseconds since the epoch, and seconds that only go forward."""

    def time_ns(self) -> int:
        """Now, since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""


class Steps(Protocol):
    """How a step is carried out in a shell (`evmperf.measure.shellstep`) or read from a log.

    `label` names the step: `Benchmark.label`.
    """

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
