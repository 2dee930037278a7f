"""Locks on this machine: a file for each device or place, for all users, locked with flock(2).

Its text says who holds the board. The kernel unlocks it when the holder and the processes that inherited it
have ended.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from pathlib import Path

from evmperf.model.errors import LabError, UsageError

HELD_BY, ENDS = " is held by ", ", expected to end at "
"""In the sentence about a board, before its holder and before a time of `moment`."""
_SYSTEM = Path("/run/lock")
"""Debian's folder for locks of all users (Filesystem Hierarchy Standard 3.0, 5.9)."""
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # it may be a pipe
_TRIES, _PAUSE_S = 20, 0.05
"""So often a busy lock is tried: its holder writes the text a moment later, and `held` locks it for one."""


class Busy(UsageError):
    """Somebody else uses the board."""


def moment(seconds: float) -> str:
    """A local time (seconds since the epoch); as texts the later one is the greater."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def holding(place: str, holder: str, since: float) -> str:
    """Who holds a board, as Labgrid names a holder, and since when (seconds since the epoch)."""
    return f"{place}{HELD_BY}{holder} since {moment(since)}"


def path(name: str) -> Path:
    """The file of a lock in $EVMPERF_LOCKS, /run/lock, or the folder of temporary files."""
    usual = _SYSTEM if os.access(_SYSTEM, os.W_OK | os.X_OK) else tempfile.gettempdir()
    return Path(os.environ.get("EVMPERF_LOCKS") or usual, f"evmperf-{name}.lock")


def lock(name: str, place: str) -> tuple[int, str]:
    """Lock a file for a board; also returns the text of the last holder. Raises Busy or LabError."""
    try:
        # In a shared folder the kernel refuses O_CREAT without O_EXCL on another
        # user's file (fs.protected_regular).
        with contextlib.suppress(FileExistsError), path(name).open("x") as created:
            os.fchmod(created.fileno(), 0o666)
        file = os.open(path(name), _FLAGS)
        for _ in range(_TRIES):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.set_inheritable(file, True)
                return file, text(file)
            time.sleep(_PAUSE_S)
        holder = text(file).partition(HELD_BY)[2]
        os.close(file)
    except OSError as error:
        raise LabError(f"{path(name)} cannot be locked: {error.strerror}; see EVMPERF_LOCKS") from None
    raise Busy(f"{place}{HELD_BY}{holder or 'an unknown user'}")


def is_held(name: str, file: int) -> bool:
    """Whether a locked file is still the one of that name, so that nobody else can lock it."""
    with contextlib.suppress(OSError):
        return os.path.samestat(path(name).lstat(), os.fstat(file))
    return False


def write(file: int, words: str) -> None:
    """Write who holds the board."""
    os.ftruncate(file, 0)
    os.pwrite(file, words.encode(errors="replace"), 0)


def text(file: int) -> str:
    """What a file says in a line of 2000 bytes at most, "" for anything else: any user may write there."""
    words = os.pread(file, 2000, 0).decode(errors="replace")
    return words if words.isprintable() and HELD_BY in words else ""


def held() -> list[str]:
    """Who holds which board on this machine."""
    found = set()
    for each in path("*").parent.glob(path("*").name):
        with contextlib.suppress(OSError), os.fdopen(os.open(each, _FLAGS)) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found.add(text(file.fileno()))
    return sorted(found - {""})
