"""How the keeper takes a board, waits for one, and gives it back."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evmperf.keeping import locks
from evmperf.keeping.locks import Busy, Locks
from evmperf.keeping.wanted import UNTIL_TAG, Holder, HoldRecord, Wanted, clock, device_key, refusal
from evmperf.model.errors import LabError, UsageError

if TYPE_CHECKING:
    from evmperf.keeping.places import Connection

KICKED_TAG = "evmperf_kicked"
"""The tag of a place with the time of the kick, in seconds since the epoch."""
LOCKS_TAG = "evmperf_locks"
"""The tag of a place with the lock folder that shows whether the holder lives. A keeper removes it
before it releases a place: if a place becomes free with the tag, its holder was kicked.
"""
_NO_TAGS = {UNTIL_TAG: "", LOCKS_TAG: "", KICKED_TAG: ""}

_CLOCKS_S = 60.0
"""Maximum difference between the clocks of a lab's hosts (seconds)."""
_LOOK_S = 0.2
_POLL_S = 5.0
"""Seconds between polls of a reservation; the coordinator processes them every 15 s."""


@dataclass(eq=False)
class Hold:
    """A board that is held, waited for, or lost; times in seconds since the epoch, 0 if unknown. All
    `parties` (a night, its session) share it by their `send`. `owner` is the coordinator's name of the
    holder, or, if `borrowed`, of the user.
    """

    wanted: Wanted
    holder: Holder
    until: float = 0.0
    grace_s: float = 0.0
    """How long a kicked place is reserved for the person who kicked its holder, in seconds."""
    doing: str = ""
    since: float = field(default_factory=time.time)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    parties: set[Callable[..., None]] = field(default_factory=set)
    owner: str = ""
    borrowed: bool = False
    locks: Locks | None = None
    connection: Connection | None = None
    lost: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self) -> HoldRecord:
        """The record for other processes."""
        board, by = self.wanted, self.holder
        return HoldRecord(
            board.place, board.coordinator, by.host, by.user, by.run, self.since, self.until, self.doing
        )

    def lose(self, why: str, *, taken: bool = True) -> None:
        """Report the loss to all parties; `taken` if no further message will follow."""
        self.lost = why
        for send in list(self.parties):
            send(lost=why, taken=taken)


class Kicks:
    """The kicks that this keeper has seen, by coordinator and place."""

    def __init__(self) -> None:
        self._by_runs: set[tuple[str, str]] = set()
        self._at: dict[tuple[str, str], float] = {}

    def look(self, coordinator: str, place: Any) -> None:
        """Note a change of a place."""
        key = (coordinator, place.name)
        if place.acquired:
            self._at.pop(key, None)  # the kicker has it, or let somebody else take it
            if "+" in place.acquired:
                self._by_runs.add(key)
            else:
                self._by_runs.discard(key)
        elif key in self._by_runs:
            self._by_runs.discard(key)
            if LOCKS_TAG in place.tags:
                self._at[key] = time.time()

    def at(self, coordinator: str, place: Any) -> float:
        """The time of a free place's kick, in seconds since the epoch; 0 if there was none."""
        said = place.tags.get(KICKED_TAG, "")
        return self._at.get((coordinator, place.name)) or (float(said) if said.isdigit() else 0.0)

    def forget(self, coordinator: str) -> None:
        """Forget the places of a lost coordinator: they become free without a kick."""
        self._by_runs = {key for key in self._by_runs if key[0] != coordinator}


class Taking:
    """Takes and releases boards for the keeper; owns the connections to coordinators."""

    def __init__(
        self,
        holds: list[Hold],
        on_change: Callable[[Connection, str], None],
        on_gone: Callable[[Connection], None],
    ) -> None:
        self.kicks = Kicks()
        self._holds, self._on_change, self._on_gone = holds, on_change, on_gone
        self._connections: dict[tuple[str, Holder], Connection] = {}
        self._users: dict[tuple[str, Holder], int] = {}
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, hold: Hold, deadline: float, priority: float, tell: Callable[[str], None]) -> None:
        """Take the board of `hold` until `deadline` (monotonic), telling the reason of each wait. Raises
        UsageError for a busy or unknown board, LabError for the lab.
        """
        self._holds.append(hold)
        try:
            if hold.wanted.coordinator:
                await self._take_place(hold, deadline, priority, tell)
            else:
                await self._take_devices(hold, deadline, tell)
        except BaseException:
            await self.let_go(hold)
            raise

    async def let_go(self, hold: Hold) -> None:
        """Release the board if it is still ours."""
        if hold in self._holds:
            self._holds.remove(hold)
        if hold.connection:
            place, owner, hold.owner = hold.wanted.place, hold.owner, ""
            if owner and not hold.lost and not hold.borrowed:
                # First, before the next holder writes its own tags; see also `Kicks`.
                with contextlib.suppress(LabError):
                    await hold.connection.tag(place, _NO_TAGS)
                await hold.connection.release(place)
        if hold.locks:
            hold.locks.release()
            hold.locks = None
        if hold.connection:
            connection, hold.connection = hold.connection, None
            await self._done_with(connection)

    @contextlib.asynccontextmanager
    async def visit(self, coordinator: str) -> AsyncIterator[Connection]:
        """A connection to a coordinator for a query; raises LabError."""
        holder = Holder(socket.gethostname(), getpass.getuser(), "keeper")
        connection = await self._connection(coordinator, holder)
        try:
            yield connection
        finally:
            await self._done_with(connection)

    def keep(self, task: asyncio.Task[None]) -> None:
        """Run a task in the background."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all connections."""
        for connection in list(self._connections.values()):
            await connection.close()

    @staticmethod
    async def _take_devices(hold: Hold, deadline: float, tell: Callable[[str], None]) -> None:
        """Take a board without a coordinator."""
        told = False
        while True:
            hold.since = time.time()
            try:
                hold.locks = Locks(hold.wanted.devices, hold.record())
            except Busy as busy:
                said = refusal(hold.wanted.place, busy.holder)
                if time.monotonic() >= deadline:
                    raise UsageError(said) from None
                if not told:
                    tell(said)
                    told = True
            else:
                hold.owner = "here"
                return
            await asyncio.sleep(_LOOK_S)

    async def _take_place(
        self, hold: Hold, deadline: float, priority: float, tell: Callable[[str], None]
    ) -> None:
        connection = await self._connection(hold.wanted.coordinator, hold.holder)
        hold.connection = connection
        places = [connection.find(name) for name in (hold.wanted.place, *hold.wanted.others)]
        tokens: dict[str, str] = {}
        told, began = False, time.time()
        try:
            while True:
                hold.changed.clear()
                places = [connection.find(place.name) for place in places]
                kept = {p.name: why for p in places if (why := self._kept(hold, p, priority, began))}
                for name in kept.keys() & tokens.keys():
                    # Our turn in the queue would block the kicker.
                    await connection.give_up(tokens.pop(name))
                turns = await _turns(connection, tokens)
                why_not = [
                    kept.get(place.name) or await self._try(hold, place, turns.get(place.name))
                    for place in places
                ]
                if hold.owner:
                    return
                if time.monotonic() >= deadline:
                    raise UsageError(why_not[0])
                if not told:
                    tell(why_not[0])
                    told = True
                for place in places:
                    if place.name not in tokens.keys() | kept.keys():
                        tokens[place.name] = await connection.reserve(place.name, priority)
                await _either(hold.changed, min(_POLL_S, deadline - time.monotonic()))
                if not connection.alive:
                    raise LabError(f"the coordinator {connection.address} went away")
        finally:
            if connection.alive:
                for token in tokens.values():
                    await connection.give_up(token)

    def _kept(self, hold: Hold, place: Any, priority: float, began: float) -> str:
        """Why a kicked place is reserved, "" if not: a session begun after it may be the kicker's."""
        assert hold.connection is not None
        at = 0.0 if place.acquired else self.kicks.at(hold.connection.address, place)
        ends = at + hold.grace_s
        # A tag may have any content.
        passed = time.time() >= ends or at > time.time() + _CLOCKS_S
        if passed or (priority >= 0 and began > at):
            return ""
        return (
            f"{place.name}: its holder was kicked at {clock(at)}; the place is reserved for the "
            f"kicker until {clock(ends)}"
        )

    async def _try(self, hold: Hold, place: Any, turn: bool | None) -> str:
        """Try to take a place with this `turn` in the queue; returns the reason of a failure, "" for none."""
        from evmperf.keeping.places import TakenAway  # noqa: PLC0415  # Labgrid is slow to import

        if hold.owner:
            return ""
        connection = hold.connection
        assert connection is not None
        hold.wanted = hold.wanted.with_place(place.name)
        try:
            if self._borrow(hold, place):
                return ""
        except Busy as busy:
            return refusal(place.name, busy.holder)
        free = not place.acquired and turn is not False
        if not free and not await self._is_stale(hold, place):
            return _why_not(place, "")
        try:
            await connection.acquire(place.name)
        except TakenAway as error:
            return _why_not(place, str(error))
        await self._mark(hold)
        return ""

    def _borrow(self, hold: Hold, place: Any) -> bool:
        """Use a place that the user acquired by hand and keeps; raises Busy when another run uses it."""
        by_hand = hold.holder.by_hand
        if not place.acquired or (place.acquired != by_hand and by_hand not in place.allowed):
            return False
        hold.since = time.time()
        hold.locks = Locks([_place_key(hold)], hold.record())
        hold.borrowed, hold.owner = True, place.acquired
        return True

    async def _is_stale(self, hold: Hold, place: Any) -> bool:
        """Whether the holder was a dead keeper of ours, without locks; its place is then released."""
        held = Holder.named(place.acquired or "")
        if not held.run or (held.host, held.user) != (hold.holder.host, hold.holder.user):
            return False
        if place.tags.get(LOCKS_TAG) != locks.identity():
            return False
        try:
            Locks([_place_key(hold)], hold.record()).release()
        except Busy:
            return False
        assert hold.connection is not None
        await hold.connection.tag(place.name, _NO_TAGS)
        await hold.connection.release(place.name, place.acquired)
        return True

    async def _mark(self, hold: Hold) -> None:
        """Note the new owner of the place."""
        connection = hold.connection
        assert connection is not None
        hold.since, hold.owner = time.time(), connection.name
        with contextlib.suppress(Busy):
            hold.locks = Locks([_place_key(hold)], hold.record())
        tags = {LOCKS_TAG: locks.identity()}
        if hold.until:
            tags[UNTIL_TAG] = f"{hold.until:.0f}"
        await connection.tag(hold.wanted.place, tags)
        # Changes during the acquire.
        self._on_change(connection, hold.wanted.place)

    # Connections

    async def _connection(self, address: str, holder: Holder) -> Connection:
        from evmperf.keeping.places import Connection  # noqa: PLC0415

        key = (address, holder)
        async with self._opening:
            found = self._connections.get(key)
            if found is None or not found.alive:
                found = Connection(address, holder, self._on_change, self._on_gone)
                await found.open()
                for place in found.places():
                    self.kicks.look(address, place)
                self._connections[key], self._users[key] = found, 0
            self._users[key] += 1
            return found

    async def _done_with(self, connection: Connection) -> None:
        key = (connection.address, connection.holder)
        if self._connections.get(key) is not connection:
            await connection.close()
            return
        self._users[key] -= 1
        if not self._users[key]:
            del self._connections[key], self._users[key]
            await connection.close()


async def _turns(connection: Connection, tokens: dict[str, str]) -> dict[str, bool]:
    """Whether it is our turn, by place; polls all reservations, as they expire otherwise."""
    found = {name: await connection.is_our_turn(token) for name, token in tokens.items()}
    for name, turn in found.items():
        if turn is None:
            del tokens[name]
    return {name: turn for name, turn in found.items() if turn is not None}


def _place_key(hold: Hold) -> str:
    return device_key(f"place {hold.wanted.place} at {hold.wanted.coordinator}")


def _why_not(place: Any, reason: str) -> str:
    if not place.acquired:
        why = reason or "reserved for somebody else"
        return f"{place.name} is unavailable ({why}): wait for it with --wait 30m"
    record = HoldRecord.of_place(place.name, place.acquired, place.changed, place.tags, "")
    return refusal(place.name, record)


async def _either(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), max(seconds, 0.01))
