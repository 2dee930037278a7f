"""What is known about a virtual board on disk, and the words its bench process uses about itself.

Each board has a folder `<state>/<name>/` with `lock` (held by the bench process for as long as it lives,
with its LabRecord as the content), `bench.log`, `qemu.log`, `disks/` and `console.stamps`.
"""

import contextlib
import fcntl
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evmperf.measure.runs import folders
from evmperf.model.errors import LabError, UsageError

DEFAULT_NAME = "virtual"
CARD = ("dut", "host", "off")
"""Where a card switch can have the card: in the board, at the host, or nowhere."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


@dataclass(frozen=True)
class Exit:
    """How a QEMU ended: when (ISO 8601, UTC), a short reason, and QEMU's own words if any."""

    at: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Nic:
    """The tester's end of a network interface; `board_address` is reserved for the board, not configured."""

    index: int
    interface: str
    address: str
    board_address: str
    prefix: int


@dataclass(frozen=True)
class TesterInfo:
    """The machine beside the board: a network namespace, or a QEMU behind SSH (`ssh_host`, `ssh_options`,
    `port`; `namespace` is ""). `command` runs its last words there.
    """

    namespace: str
    command: list[str]
    nics: list[Nic]
    ssh_host: str = ""
    ssh_options: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def typed(self) -> str:
        """The command as people type it."""
        words = self.command if self.ssh_host else ["ip", "netns", "exec", self.namespace]
        return shlex.join(words)


@dataclass(frozen=True)
class LabOptions:
    """How to serve a board; port 0: any free one; `fresh`: new disks; `qemu_options` follow the image's."""

    name: str
    variant: str
    serial_port: int = 0
    power_port: int = 0
    fresh: bool = False
    qemu_options: Sequence[str] = ()


@dataclass(kw_only=True)
class LabRecord:
    """A bench's process and ports on 127.0.0.1: of the content of its lock, which is its first status."""

    pid: int
    serial_port: int
    power_port: int


@dataclass(kw_only=True)
class BenchStatus(LabRecord):
    """A running bench; times are ISO 8601, UTC. With `power` on and `qemu_pid` None the board has ended,
    for the reason `last_exit`. `console_bytes` is the offset of `console.stamps`.
    """

    name: str
    variant: str
    qemu_options: list[str]
    folder: str
    image_hash: str
    started: str
    since: str
    tester: TesterInfo | None = None
    tester_reason: str = ""
    power: bool = False
    power_cycles: int = 0
    qemu_pid: int | None = None
    last_exit: Exit | None = None
    console_bytes: int = 0
    console_clients: int = 0
    card: str = ""
    """Where the card is, one of CARD; "" for a board without a card switch."""
    card_file: str = ""
    """The file that is the card, "" for a board without a card switch."""
    silent: str = ""
    """Why the boot ROM found nothing to start at the last power-on, "" if it did."""


def now() -> str:
    """The time of day as ISO 8601 in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def folder(name: str) -> Path:
    """The board's folder (absolute), which may not exist; raises UsageError for a name that is not valid."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"board name {name!r} is not valid: use up to 32 lower-case letters, digits, '-' and "
            "'_', starting with a letter or digit"
        )
    return folders.state_dir().absolute() / name


def names() -> list[str]:
    """All boards that a bench was ever started for, running or not, sorted."""
    found = (lock.parent.name for lock in folders.state_dir().glob("*/lock"))
    return sorted(name for name in found if _NAME.fullmatch(name))


def read_record(board: Path) -> LabRecord | None:
    """The record of a bench that lives; None for one that is not ready yet."""
    try:
        return msgspec.json.decode((board / "lock").read_bytes(), type=LabRecord)
    except (OSError, msgspec.DecodeError):
        return None


def is_locked(board: Path) -> bool:
    """Whether a bench process lives for this board."""
    try:
        handle = os.open(board / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def hold_lock(board: Path) -> int:
    """Lock the board for the rest of this process; returns the descriptor, raises LabError if it is taken."""
    # Someone who only looks (is_locked) holds the lock for microseconds: that is not a bench.
    remedy = f"stop it with `evmperf virtual stop {board.name}`"
    handle = _held(board / "lock", 1, f"the bench of board {board.name} is already running: {remedy}")
    os.ftruncate(handle, 0)  # the record of the bench before
    return handle


@contextlib.contextmanager
def starting(board: Path, timeout: float) -> Iterator[None]:
    """Keep others from starting or stopping the board; raises LabError after `timeout` seconds of waiting."""
    board.mkdir(parents=True, exist_ok=True)
    who = f"someone else has been starting or stopping board {board.name} for more than {timeout:g} s"
    handle = _held(board / "start.lock", timeout, f"{who}: see {board / 'bench.log'}")
    try:
        yield
    finally:
        os.close(handle)


def _held(file: Path, timeout: float, taken: str) -> int:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(handle)
                raise LabError(taken) from None
            time.sleep(0.01)
        else:
            return handle
