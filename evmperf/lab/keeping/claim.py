"""A board that this process holds: at Labgrid's coordinator, or by a lock on this machine."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from evmperf.boards import board as boards
from evmperf.lab.keeping.locks import Busy, Locks, held
from evmperf.lab.keeping.wanted import HoldRecord, Wanted, clock, placement, refusal, variables
from evmperf.model.errors import BoardLost, UsageError

if TYPE_CHECKING:
    from evmperf.lab.keeping.places import CoordinatorSession

JOIN = "EVMPERF_HOLD"
"""The environment variable by which a holder shares its board with a process that it starts."""
_LOOK_S = 0.5


def holders(coordinator: str) -> list[HoldRecord]:
    """The records of all held boards on this host and, if given, at a coordinator. Raises LabError."""
    records = held()
    here = {record.place for record in records if record.coordinator == coordinator}
    if coordinator:
        from evmperf.lab.keeping.places import connect  # noqa: PLC0415  # Labgrid is slow to import

        with contextlib.closing(connect(coordinator)) as session:
            records += [record for record in session.held() if record.place not in here]
    return sorted(records, key=lambda record: record.place)


class Claim:
    """A board that is held until `release` or its loss. Another thread calls `on_lost` with the reason."""

    def __init__(self, wanted: Wanted, run: str, until: float) -> None:
        user, host = os.environ.get("LG_USERNAME") or getpass.getuser(), os.environ.get("LG_HOSTNAME")
        self._shares = os.environ.get(JOIN) == wanted.token
        if JOIN in os.environ:  # the name is that of the holder who started us
            user, _, of_holder = user.partition("+")
            run = of_holder if self._shares else run
        self._by_hand = f"{host or socket.gethostname()}/{user}"
        self.name = f"{self._by_hand}+{run}" if run else self._by_hand
        """The holder as the coordinator names it: two runs of one user are two holders."""
        self._record = HoldRecord(self.name, wanted.place, wanted.coordinator, time.time(), until)
        self._wanted = self.board = wanted
        self.lost = ""
        """Why the board was lost, "" while it is held."""
        self.on_lost: Callable[[str], None] = lambda sentence: None
        self._locks: Locks | None = None
        self._session: CoordinatorSession | None = None
        self._owner = ""
        """Who holds the place at the coordinator as long as nothing is lost."""

    @classmethod
    def take(
        cls,
        board: Wanted,
        run: str,
        *,
        until: float = 0.0,
        wait_s: float = 0.0,
        priority: float = 0.0,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> Self:
        """Hold a board for a run that is expected to end at `until` (seconds since the epoch).

        Waits at most `wait_s` for a busy board and reports the wait to `tell`. A board that whoever started
        this process holds for it is shared. Raises UsageError if the board is busy or unknown, LabError if
        the lab does not answer.
        """
        claim = cls(board, run, until)
        try:
            claim._take(time.monotonic() + wait_s, priority, tell)
        except BaseException:
            claim.release()
            raise
        return claim

    @property
    def names(self) -> dict[str, str]:
        """The variables by which Labgrid's clients are this holder."""
        return dict(zip(("LG_HOSTNAME", "LG_USERNAME"), self.name.split("/", 1), strict=True))

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process that we start shares the board."""
        place = {"LG_PLACE": self._wanted.place, "LG_COORDINATOR": self._wanted.coordinator}
        return self.names | {JOIN: self._wanted.token} | (place if self._wanted.coordinator else {})

    def _take(self, deadline: float, priority: float, tell: Callable[[str], None]) -> None:
        if self.board.coordinator:
            from evmperf.lab.keeping.places import connect  # noqa: PLC0415  # Labgrid is slow to import

            self._session = connect(self.board.coordinator, self.board.file, self.environment)
            self.board = replace(self.board, place=self._session.find(self.board.place).name)
        token = ""
        try:
            while why := self._try(tell):
                if time.monotonic() >= deadline:
                    raise UsageError(why)
                if not token:
                    tell(why)
                token = self._session.queue(self.board.place, priority, token) if self._session else "-"
                time.sleep(_LOOK_S)
        finally:
            if token and self._session:
                self._session.leave_queue(token)

    def _try(self, tell: Callable[[str], None]) -> str:
        """Take the board; returns why it cannot be had."""
        place = self.board.place
        self._record = replace(self._record, place=place, since=time.time())
        try:
            self._locks = locks = Locks(self.board.locked, shared=self._shares)
        except Busy as busy:
            return refusal(place, busy.holder)
        locks.describe(self._record)
        if self._session and (why := self._try_place(self._session, place, locks.left, tell)):
            locks.close()
            return why
        locks.left = None
        return ""

    def _try_place(
        self, session: CoordinatorSession, name: str, left: HoldRecord | None, tell: Callable[[str], None]
    ) -> str:
        place, self._owner = session.find(name), session.name
        if place.acquired == self._by_hand or self._by_hand in place.allowed:
            self.name, self._owner = self._by_hand, place.acquired  # who acquired it by hand, keeps it
        elif not self._shares:
            if left and place.acquired == left.holder and left.by == self._record.by:
                session.release(name, left.holder)
                tell(f"{name} was still held by {left}, whose session was killed: taken back")
            elif place.acquired:
                return refusal(name, session.record(place))
            if why := session.acquire(name):
                return why
        session.watchers[name] = self._watch
        self._watch(None if session.ended else place.acquired or "")  # it may have changed before
        return ""

    def _watch(self, acquired: str | None) -> None:
        """Take note of a place's holder, None when the coordinator is gone; called in another thread."""
        board, now = self.board, clock(time.time())
        if acquired == self._owner or (self.lost and not acquired):
            return
        if acquired is None:
            at = f"the coordinator {board.coordinator}"
            self._lose(f"{at} went away at {now} and has forgotten who holds {board.place}")
        elif not acquired:
            self._lose(f"{board.place} was released by another user at {now}")
        else:  # also after the release of a kick
            self._lose(f"{board.place} was taken by {HoldRecord(acquired, board.place)} at {now}")

    def _lose(self, sentence: str) -> None:
        first, self.lost = not self.lost, sentence
        if first and self._locks:
            self._locks.unlock()  # the next holder may be of this machine
        if first:
            self.on_lost(sentence)

    def check(self) -> None:
        """Raise BoardLost if the board is not ours any more."""
        if not self.lost and self._locks and not self._locks.intact():
            self._lose(f"the lock of {self.board.place} was deleted: anybody may hold the board now")
        if self.lost:
            raise BoardLost(self.lost)

    def doing(self, what: str, until: float = 0.0) -> None:
        """Report the current case and the expected end, for `evmperf lab who`."""
        self._record = replace(self._record, doing=what, until=until or self._record.until)
        if self._locks and not self.lost:
            self._locks.describe(self._record)

    def release(self) -> None:
        """Release the board; a second call does nothing."""
        locks, session, self._locks, self._session = self._locks, self._session, None, None
        if session:
            session.watchers.pop(self.board.place, None)
            if not self._shares and not self.lost:
                session.release(self.board.place)  # if it is ours: an interrupted acquire's, too
            session.close()
        if locks:
            locks.close()


@contextlib.contextmanager
def holding(board: str, run: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the board of this file for `run`, after a wait of at most `wait_s`; sessions that are started
    meanwhile share it. Raises UsageError or LabError.
    """

    def tell(sentence: str) -> None:
        print(f"evmperf: {sentence}", file=sys.stderr, flush=True)

    claim = Claim.take(placement(boards.find(board)), run, wait_s=wait_s, tell=tell)
    try:
        with variables(claim.environment):
            yield
    finally:
        claim.release()
