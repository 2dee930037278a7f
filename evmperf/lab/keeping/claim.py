"""A board that this process holds: at Labgrid's coordinator, or by locks on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import re
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from evmperf.lab.keeping import locks
from evmperf.lab.keeping.wanted import Wanted
from evmperf.model.errors import BoardLost, UsageError

if TYPE_CHECKING:
    from evmperf.lab.keeping.places import CoordinatorSession

JOIN = "EVMPERF_HOLD"
"""The environment variable by which a holder shares its board with a process that it starts: what is locked,
and the descriptors of the locked files, which the process inherits.
"""
_LOOK_S = 0.5


class Claim:
    """A board that is held until `close` or its loss. Another thread calls `on_lost` with the reason."""

    def __init__(self, board: Wanted, run: str) -> None:
        host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
        user = os.environ.get("LG_USERNAME") or getpass.getuser()
        self._token = "-".join(board.locks)
        token, _, files = os.environ.get(JOIN, "").partition(" ")
        inherited = {name: int(file) for name, file in re.findall(r"(\w+):([0-9]{1,7})(?!\S)", files)}
        held = bool(inherited) and all(locks.is_held(*each) for each in inherited.items())
        self._shares = held and token == self._token
        # Whoever started us for a board of theirs has put their run into the name.
        self._by_hand = f"{host}/{user.partition('+')[0] if JOIN in os.environ else user}"
        self.name = f"{host}/{user}" if self._shares else f"{self._by_hand}+{run}"
        """The holder as the coordinator names it: two runs of one user are two holders."""
        self.board = board
        self.lost = ""
        """Why the board was lost, "" while it is held."""
        self.on_lost: Callable[[str], None] = lambda sentence: None
        self._files = inherited if self._shares else {}
        self._session: CoordinatorSession | None = None
        self._place: Any = None
        self._owner: str | None = None
        """Who has the place at the coordinator as long as nothing is lost."""
        self._end = contextlib.ExitStack()

    @classmethod
    def take(
        cls,
        board: Wanted,
        run: str,
        *,
        wait_s: float = 0.0,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> Self:
        """Hold a board for a run. Waits at most `wait_s` for a busy board and reports the wait to `tell`. A
        board that whoever started this process holds for it is shared.

        Raises UsageError if the board is busy or unknown, LabError if the lab does not answer.
        """
        claim, deadline, told = cls(board, run), time.monotonic() + wait_s, False
        while True:
            try:
                claim._take(tell)
                return claim
            except BaseException as error:
                claim.close()
                if not isinstance(error, locks.Busy):
                    raise
                if time.monotonic() >= deadline:
                    raise UsageError(f"{error}: wait for it with --wait 30m") from None
                if not told:
                    tell(str(error))
                told = True
            time.sleep(_LOOK_S)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Labgrid's clients are this holder, and a process shares the board."""
        host, _, user = self.name.partition("/")
        hold = " ".join([self._token, *(f"{name}:{file}" for name, file in self._files.items())])
        place = {"LG_PLACE": self.board.place, "LG_COORDINATOR": self.board.coordinator}
        names = {"LG_HOSTNAME": host, "LG_USERNAME": user, JOIN: hold}
        return names | (place if self.board.coordinator else {})

    def _take(self, tell: Callable[[str], None]) -> None:
        """Take the board; raises Busy while somebody else has it."""
        if self.board.coordinator:
            from evmperf.lab.keeping.places import connect  # noqa: PLC0415  # Labgrid is slow to import

            self._session = connect(self.board, self.environment)
            self.name = self._session.name
            self._place = self._session.find(self.board.place)
            self.board = replace(self.board, place=self._place.name)
        holder, killed = self.name, ""
        for name in [] if self._shares else self.board.locks:
            self._files[name], killed = locks.lock(name, self.board.place)
            self._end.callback(self._unlock, name)
        if self._session:
            self._take_place(self._session, killed, tell)
        self.check()
        for file in [] if self._shares else self._files.values():
            locks.write(file, locks.holding(self.board.place, holder, time.time()))

    def _take_place(self, session: CoordinatorSession, killed: str, tell: Callable[[str], None]) -> None:
        place, holder, self._owner = self._place, self._place.acquired, self.name
        if holder == self._by_hand or self._by_hand in place.allowed:
            self.name, self._owner = self._by_hand, holder  # who acquired it by hand, keeps it
        elif not self._shares:
            if f"{locks.HELD_BY}{holder} since " in killed and holder.startswith(f"{self._by_hand}+"):
                session.release(place.name, holder)
                tell(f"{place.name} was still held by {holder}, whose session was killed: taken back")
            self._end.callback(session.release, place.name, self.name)  # an interrupted acquire's, too
            session.acquire(place)
        session.watchers.add(self._look)
        self._end.callback(session.watchers.discard, self._look)

    def _look(self) -> None:
        """Note a loss; the coordinator's session calls it in a thread of its own."""
        place, acquired = self.board.place, self._place.acquired if self._place else None
        now = time.strftime("%H:%M")
        if acquired and acquired != self._owner and f" {acquired} " not in self.lost:
            sentence = f"{place} was taken by {acquired} at {now}"  # perhaps after the release of a kick
        elif self.lost:
            return
        elif self._session and self._session.ended:
            at = f"the coordinator {self.board.coordinator}"
            sentence = f"{at} went away at {now} and has forgotten who holds {place}"
        elif acquired != self._owner:
            sentence = f"{place} was released by another user at {now}"
        elif not all(locks.is_held(*each) for each in self._files.items()):
            sentence = f"the lock of {place} is gone: anybody may hold the board now"
        else:
            return
        first, self.lost = not self.lost, sentence
        if first:
            for file in self._files.values():
                fcntl.flock(file, fcntl.LOCK_UN)  # also for processes that inherited it
            self.on_lost(sentence)

    def check(self) -> None:
        """Raise BoardLost if the board is not ours any more."""
        self._look()
        if self.lost:
            raise BoardLost(self.lost)

    def expect(self, until: float) -> None:
        """Tell others when the board should be free (seconds since the epoch)."""
        for file in self._files.values() if not self.lost else ():
            said = locks.text(file).partition(locks.ENDS)[0]
            locks.write(file, f"{said}{locks.ENDS}{locks.moment(until)}")

    def _unlock(self, name: str) -> None:
        fcntl.flock(self._files[name], fcntl.LOCK_UN)
        os.close(self._files.pop(name))

    def close(self) -> None:
        """Release the board; a second call does nothing."""
        self._end.close()
