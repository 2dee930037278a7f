"""How the keeper takes boards, waits for them, watches them, and gives them back."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import secrets
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from evmperf.lab.keeping import locks
from evmperf.lab.keeping.locks import Busy, Locks
from evmperf.lab.keeping.wanted import (
    LOCKS_TAG,
    UNTIL_TAG,
    Holder,
    HoldRecord,
    Wanted,
    clock,
    device_key,
    refusal,
)
from evmperf.model.errors import LabError, UsageError

if TYPE_CHECKING:
    from evmperf.lab.keeping.places import Connection

_NO_TAGS = {UNTIL_TAG: "", LOCKS_TAG: ""}
_LOOK_S = 0.2
_POLL_S = 5.0
"""Seconds between polls of a reservation; the coordinator processes them every 15 s."""


@dataclass(eq=False)
class Hold:
    """A board that is held, waited for until `deadline` (monotonic), or lost; times in seconds since the
    epoch, 0 if unknown. All `parties` (a night, its session) share it by their `send`. `owner` is the
    coordinator's name of the holder, or, if `borrowed`, of the user.
    """

    board: Wanted
    holder: Holder
    until: float = 0.0
    deadline: float = 0.0
    priority: float = 0.0
    doing: str = ""
    since: float = field(default_factory=time.time)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    parties: set[Callable[..., None]] = field(default_factory=set)
    owner: str = ""
    borrowed: bool = False
    locks: Locks | None = None
    connection: Connection | None = None
    waiting: str = ""
    lost: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self) -> HoldRecord:
        """The record for other processes."""
        board, by = self.board, self.holder
        return HoldRecord(
            by.host,
            by.user,
            by.run,
            place=board.place,
            coordinator=board.coordinator,
            since=self.since,
            until=self.until,
            doing=self.doing,
        )

    def send(self, **message: object) -> None:
        """Send a message to all parties."""
        for send in list(self.parties):
            send(**message)

    def wait(self, why: str) -> None:
        """Tell the reason of the wait, once; raises UsageError after the deadline."""
        if time.monotonic() >= self.deadline:
            raise UsageError(why)
        if not self.waiting:
            self.send(waiting=why)
        self.waiting = why

    def lose(self, why: str, *, taken: bool = True) -> None:
        """Report the loss to all parties; `taken` if no further message will follow."""
        self.lost = why
        self.send(lost=why, taken=taken)


class Taking:
    """All boards that a keeper holds or waits for, and the connections to their coordinators."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []
        self._connections: dict[tuple[str, Holder], Connection] = {}
        self._forgotten: dict[str, set[str]] = {}
        """By coordinator, the places that were held when it went away: their tags may outlive the hold."""
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, hold: Hold) -> None:
        """Take the board of `hold`. Raises UsageError for a busy or unknown board, LabError for the lab."""
        self.holds.append(hold)
        try:
            if hold.board.coordinator:
                await self._take_place(hold)
            while not hold.owner:
                if why := self._lock(hold):
                    hold.wait(why)
                    await asyncio.sleep(_LOOK_S)
        except BaseException:
            await self.let_go(hold)
            raise

    def _lock(self, hold: Hold) -> str:
        """Take the devices of this machine; returns why they cannot be had, "" when they are."""
        board, hold.since = hold.board, time.time()
        try:
            hold.locks = Locks(board.devices, hold.record())
        except Busy as busy:
            return refusal(board.place, busy.holder)
        hold.owner = "here"
        return ""

    async def let_go(self, hold: Hold) -> None:
        """Release the board if it is still ours."""
        connection, owner, hold.owner, hold.token = hold.connection, hold.owner, "", ""
        if connection and owner and not hold.lost and not hold.borrowed:
            # First, before the next holder writes its own tags; see also `LOCKS_TAG`.
            with contextlib.suppress(LabError):
                await connection.tag(hold.board.place, _NO_TAGS)
            await connection.release(hold.board.place)
        if hold.locks:
            hold.locks.release()
            hold.locks = None
        if hold in self.holds:
            self.holds.remove(hold)
        # Another hold may still need the connection, also to be released.
        if connection and not any(other.connection is connection for other in self.holds):
            key = (connection.address, connection.holder)
            if self._connections.get(key) is connection:
                del self._connections[key]
            await connection.close()

    async def visit(self, coordinator: str) -> Connection:
        """A connection to a coordinator for a query, which stays open for the next; raises LabError."""
        return await self._connection(coordinator, Holder(socket.gethostname(), getpass.getuser(), "keeper"))

    async def close(self) -> None:
        """End all connections."""
        for connection in list(self._connections.values()):
            await connection.close()

    async def _take_place(self, hold: Hold) -> None:
        connection = hold.connection = await self._connection(hold.board.coordinator, hold.holder)
        names = [connection.find(name).name for name in (hold.board.place, *hold.board.others)]
        tokens: dict[str, str] = {}
        try:
            while True:
                hold.changed.clear()
                places = [connection.find(name) for name in names]
                # All reservations are polled, as they expire otherwise.
                turns = {name: await connection.is_our_turn(token) for name, token in tokens.items()}
                tokens = {name: token for name, token in tokens.items() if turns[name] is not None}
                why_not = [
                    await self._try(hold, connection, place, turns.get(place.name)) for place in places
                ]
                if hold.owner:
                    return
                hold.wait(why_not[0])
                for name in names:
                    if name not in tokens:
                        tokens[name] = await connection.reserve(name, hold.priority)
                with contextlib.suppress(TimeoutError):
                    left_s = max(hold.deadline - time.monotonic(), 0.01)
                    await asyncio.wait_for(hold.changed.wait(), min(_POLL_S, left_s))
                if not connection.alive:
                    raise LabError(f"the coordinator {connection.address} went away")
        finally:
            if connection.alive:
                for token in tokens.values():
                    await connection.give_up(token)

    async def _try(self, hold: Hold, connection: Connection, place: Any, turn: bool | None) -> str:
        """Try to take a place with this `turn` in the queue; returns the reason of a failure, "" for none."""
        from evmperf.lab.keeping.places import TakenAway  # noqa: PLC0415  # Labgrid is slow to import

        if hold.owner:
            return ""
        hold.board = replace(hold.board, place=place.name)
        by_hand = hold.holder.by_hand
        own = place.acquired == by_hand or by_hand in place.allowed
        if place.acquired and own:
            # The user acquired it by hand, and keeps it.
            hold.since = time.time()
            try:
                hold.locks = Locks([_place_key(hold)], hold.record())
            except Busy as busy:
                return refusal(place.name, busy.holder)
            hold.borrowed, hold.owner = True, place.acquired
            return ""
        free = not place.acquired and turn is not False
        if not free and not await _is_stale(hold, connection, place):
            return _why_not(place, "")
        try:
            await connection.acquire(place.name)
        except TakenAway as error:
            return _why_not(place, str(error))
        hold.since, hold.owner = time.time(), connection.name
        with contextlib.suppress(Busy):
            hold.locks = Locks([_place_key(hold)], hold.record())
        until = {UNTIL_TAG: f"{hold.until:.0f}"} if hold.until else {}
        await connection.tag(place.name, {LOCKS_TAG: f"{locks.identity()} {hold.owner}", **until})
        # Changes during the acquire.
        self._on_change(connection, place.name)
        return ""

    async def _connection(self, address: str, holder: Holder) -> Connection:
        """The connection of a holder to a coordinator, opened if necessary."""
        from evmperf.lab.keeping.places import Connection  # noqa: PLC0415

        async with self._opening:
            connection = self._connections.get((address, holder))
            if connection is None or not connection.alive:
                connection = Connection(address, holder, self._on_change, self._on_gone)
                await connection.open()
                self._connections[address, holder] = connection
                await self._tidy(connection)
            return connection

    async def _tidy(self, connection: Connection) -> None:
        """After a coordinator's restart take our tags off: Labgrid keeps them without the holder, which looks
        like a kick.
        """
        forgotten = self._forgotten.get(connection.address, set())
        for place in connection.places():
            if place.name in forgotten and LOCKS_TAG in place.tags and not place.acquired:
                await connection.tag(place.name, _NO_TAGS)
                place.tags.pop(LOCKS_TAG, "")  # the change of the place arrives on another stream
        self._forgotten.pop(connection.address, None)

    # Events

    def _on_change(self, connection: Connection, place: str) -> None:
        """Check after a change whether the place is still ours."""
        if not connection.alive:
            return  # the first report
        current = next((p for p in connection.places() if p.name == place), None)
        now = (current.acquired or "") if current else ""
        of = current.tags.get(LOCKS_TAG, "").partition(" ")[2] if current else ""
        if now and of not in ("", now) and not Holder.named(now).run:
            self._background(connection.tag(place, _NO_TAGS))  # the kicker has it
        for hold in self.holds:
            if hold.connection is not connection:
                continue
            if not hold.owner:
                hold.changed.set()  # still waiting for this place or another
            elif hold.board.place != place:
                continue
            elif now and now != hold.owner:
                hold.lose(f"{place} was taken by {Holder.named(now)} at {clock(time.time())}")
            elif not now and not hold.lost:
                hold.lose(f"{place} was released by another user at {clock(time.time())}", taken=False)

    def _on_gone(self, connection: Connection) -> None:
        """Report a lost coordinator, which has forgotten all holders."""
        if not any(hold.connection is connection for hold in self.holds):
            self._background(connection.close())
        for hold in self.holds:
            if hold.connection is connection:
                hold.changed.set()
                if hold.owner and not hold.lost:
                    self._forgotten.setdefault(connection.address, set()).add(hold.board.place)
                    hold.lose(
                        f"the coordinator {connection.address} went away at {clock(time.time())} "
                        f"and has forgotten who holds {hold.board.place}"
                    )

    def _background(self, work: Coroutine[object, object, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(LabError, UsageError):
                await work

        task = asyncio.create_task(quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _is_stale(hold: Hold, connection: Connection, place: Any) -> bool:
    """Whether the holder was a dead keeper of ours, without locks; its place is then released."""
    held = Holder.named(place.acquired or "")
    if not held.run or (held.host, held.user) != (hold.holder.host, hold.holder.user):
        return False
    if place.tags.get(LOCKS_TAG) != f"{locks.identity()} {place.acquired}":
        return False
    try:
        Locks([_place_key(hold)], hold.record()).release()
    except Busy:
        return False
    await connection.tag(place.name, _NO_TAGS)
    await connection.release(place.name, place.acquired)
    return True


def _place_key(hold: Hold) -> str:
    kind = "place" if hold.holder.run else "place by hand"
    return device_key(f"{kind} {hold.board.place} at {hold.board.coordinator}")


def _why_not(place: Any, reason: str) -> str:
    if not place.acquired:
        why = reason or "reserved for somebody else"
        return f"{place.name} is unavailable ({why}): wait for it with --wait 30m"
    return refusal(place.name, HoldRecord.of_place(place.name, place.acquired, place.changed, place.tags, ""))
