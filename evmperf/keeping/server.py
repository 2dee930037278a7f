"""The keeper: one process a host and user that holds the boards of all its runs.

It notices at once when a place is taken, the coordinator goes away, or a holder dies (the kernel
closes its socket). It starts with the first session and ends when no client is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from evmperf.keeping import wire
from evmperf.keeping.locks import Busy
from evmperf.keeping.taking import KICKED_TAG, Hold, Taking
from evmperf.keeping.wanted import UNTIL_TAG, Holder, Wanted, clock, who_holds
from evmperf.model.errors import EvmperfError, LabError, UsageError

if TYPE_CHECKING:
    from evmperf.keeping.places import Connection

IDLE_S = 5.0
"""How long the keeper stays without clients, in seconds."""

_MOVED_S = 60.0
"""Smaller changes of an expected end are not sent to the coordinator (seconds)."""

ASK_TAG = "evmperf_ask"
"""A message for the holder of a place, from another host."""


class Client:
    """A process that is connected to the keeper."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.holds: list[Hold] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def send(self, **message: Any) -> None:
        """Send a message; another task notices a lost client."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(wire.encode(message))


class Keeper:
    """All holds of this host and user, and the connections behind them."""

    def __init__(self) -> None:
        self.holds: list[Hold] = []
        self._clients: set[Client] = set()
        self._taking = Taking(self.holds, self.on_change, self.on_gone)
        self._needed = time.monotonic()
        self._ending = asyncio.Event()

    async def serve(self, path: str) -> None:
        """Serve until the keeper is idle for a while or is told to end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.set)
        server = await asyncio.start_unix_server(self._client, path, limit=wire.LINE_LIMIT)
        while not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), 1.0)
            if self._clients:
                self._needed = time.monotonic()
            elif time.monotonic() - self._needed > IDLE_S:
                break
        server.close()
        for hold in list(self.holds):
            if not hold.lost:
                await self._taking.let_go(hold)
            hold.lose("the keeper of this host was ended")
        await self._taking.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(writer)
        self._clients.add(client)
        try:
            while line := await reader.readline():
                # A hold may wait for an hour; the client's other messages are still served.
                task = asyncio.create_task(self._answer(client, wire.decode(line)))
                client.tasks.add(task)
                task.add_done_callback(client.tasks.discard)
        except (OSError, ValueError) as error:
            print(f"a client sent an invalid message: {error}", file=sys.stderr, flush=True)
        finally:
            for task in list(client.tasks):
                task.cancel()
            await asyncio.gather(*client.tasks, return_exceptions=True)
            for hold in list(client.holds):
                await self._leave(client, hold)
            self._clients.discard(client)
            self._needed = time.monotonic()
            writer.close()

    async def _answer(self, client: Client, message: dict[str, Any]) -> None:
        number = message.pop("n", None)
        try:
            answer = await getattr(self, f"_do_{message.pop('do')}")(client, **message)
        except EvmperfError as error:
            client.send(re=number, error=str(error), kind=str(error.kind))
        except Exception as error:
            client.send(re=number, error=f"the keeper failed: {error!r}", kind="lab")
            raise
        else:
            client.send(re=number, **answer)

    # Requests of clients

    async def _do_hold(
        self,
        client: Client,
        *,
        wanted: dict[str, Any],
        holder: dict[str, str],
        until: float,
        wait_s: float,
        priority: float,
        grace_s: float,
    ) -> dict[str, Any]:
        """Hold a board after a limited wait."""
        hold = Hold(msgspec.convert(wanted, Wanted), Holder(**holder), until, grace_s)
        hold.parties.add(client.send)

        def tell(waiting: str) -> None:
            client.send(waiting=waiting)

        await self._taking.take(hold, time.monotonic() + wait_s, priority, tell)
        client.holds.append(hold)
        return _held(hold)

    async def _do_join(self, client: Client, token: str) -> dict[str, Any]:
        """Share a board that another process holds for this one."""
        for hold in self.holds:
            if hold.token == token:
                hold.parties.add(client.send)
                client.holds.append(hold)
                return _held(hold)
        raise LabError("the night no longer holds this session's board")

    async def _do_check(self, client: Client) -> dict[str, Any]:
        for hold in client.holds:
            if hold.locks and not hold.lost:
                try:
                    hold.locks.keep()
                except Busy as busy:
                    hold.lose(f"{hold.wanted.place} is {who_holds(busy.holder)}: our lock was deleted")
        return {"lost": next((hold.lost for hold in client.holds if hold.lost), "")}

    async def _do_doing(self, client: Client, what: str, until: float) -> dict[str, Any]:
        """Note what a client measures, and its expected end."""
        for hold in client.holds:
            hold.doing = what
            moved = until and abs(until - hold.until) > _MOVED_S
            hold.until = until if moved else hold.until
            if moved and hold.connection and not hold.borrowed and not hold.lost:
                with contextlib.suppress(LabError):
                    await hold.connection.tag(hold.wanted.place, {UNTIL_TAG: f"{until:.0f}"})
            if hold.locks:
                hold.locks.describe(hold.record())
        return {}

    async def _do_release(self, client: Client) -> dict[str, Any]:
        for hold in list(client.holds):
            await self._leave(client, hold)
        return {}

    async def _do_places(self, client: Client, coordinator: str) -> dict[str, Any]:
        """The places of a coordinator."""
        async with self._taking.visit(coordinator) as connection:
            return {
                "places": [
                    {
                        "name": place.name,
                        "tags": dict(place.tags),
                        "comment": place.comment,
                        "acquired": place.acquired or "",
                        "reserved": bool(place.reservation),
                        "changed": place.changed,
                        "ready": connection.has_devices(place),
                    }
                    for place in connection.places()
                ]
            }

    async def _do_tag(
        self, client: Client, coordinator: str, place: str, tags: dict[str, str]
    ) -> dict[str, Any]:
        async with self._taking.visit(coordinator) as connection:
            await connection.tag(connection.find(place).name, tags)
        return {}

    async def _do_ask(self, client: Client, place: str, coordinator: str, message: str) -> dict[str, Any]:
        """Pass a message to the holder of a place, on this host or behind the coordinator."""
        for hold in self.holds:
            if hold.wanted.place == place and hold.wanted.coordinator == coordinator:
                self._tell(hold, message)
                return {"told": str(hold.holder)}
        if not coordinator:
            raise UsageError(f"no one on this host holds a board {place!r}: see `evmperf who`")
        async with self._taking.visit(coordinator) as connection:
            found = connection.find(place)
            if not found.acquired:
                raise UsageError(f"{place} is free: start your session")
            if "+" not in found.acquired:
                raise UsageError(
                    f"{place} is held by {Holder.named(found.acquired)} by hand: only a run "
                    f"can show a message"
                )
            await connection.tag(found.name, {ASK_TAG: message})
            return {"told": str(Holder.named(found.acquired))}

    # Events

    def on_change(self, connection: Connection, place: str) -> None:
        """Check after a change whether the place is still ours."""
        if not connection.alive:
            return  # the first report; `Taking` looks at it once the connection is open
        found = next((p for p in connection.places() if p.name == place), None)
        if found:
            self._taking.kicks.look(connection.address, found)
            if found.acquired and KICKED_TAG in found.tags:
                self._background(connection.tag(place, {KICKED_TAG: ""}))
        for hold in self.holds:
            if hold.connection is not connection:
                continue
            if not hold.owner:
                hold.changed.set()  # still waiting for this place or another
                continue
            if hold.wanted.place != place:
                continue
            now = (found.acquired or "") if found else ""
            if now != hold.owner:
                kicked = found and not now and self._taking.kicks.at(connection.address, found)
                if kicked:
                    # For keepers that did not see the kick, and for the successor of this one.
                    self._background(self._note_kick(connection, place, int(kicked)))
                self._lose(hold, now)
            elif found and (message := found.tags.get(ASK_TAG)):
                self._tell(hold, message)
                self._background(connection.tag(place, {ASK_TAG: ""}))

    @staticmethod
    async def _note_kick(connection: Connection, place: str, at: int) -> None:
        """Tell other keepers of a kick, unless the kicker has the place already."""
        if not connection.find(place).acquired:
            await connection.tag(place, {KICKED_TAG: str(at)})

    def on_gone(self, connection: Connection) -> None:
        """Report a lost coordinator, which has forgotten all holders."""
        self._taking.kicks.forget(connection.address)
        for hold in self.holds:
            if hold.connection is connection:
                hold.changed.set()
                if hold.owner and not hold.lost:
                    hold.lose(
                        f"the coordinator {connection.address} went away at {clock(time.time())} "
                        f"and has forgotten who holds {hold.wanted.place}"
                    )

    def _lose(self, hold: Hold, now: str) -> None:
        place = hold.wanted.place
        if now:
            hold.lose(f"{place} was taken by {Holder.named(now)} at {clock(time.time())}")
        elif not hold.lost:
            why = f"{place} was released by another user at {clock(time.time())}"
            hold.lose(why, taken=False)

    @staticmethod
    def _tell(hold: Hold, message: str) -> None:
        for send in list(hold.parties):
            send(asked=message)

    async def _leave(self, client: Client, hold: Hold) -> None:
        client.holds.remove(hold)
        hold.parties.discard(client.send)
        if not hold.parties:
            await self._taking.let_go(hold)

    def _background(self, work: Any) -> None:
        async def quietly() -> None:
            with contextlib.suppress(LabError, UsageError):
                await work

        self._taking.keep(asyncio.create_task(quietly()))


def _held(hold: Hold) -> dict[str, Any]:
    user = hold.holder.user if hold.borrowed else hold.holder.labgrid_user
    host = hold.holder.host
    return {
        "place": hold.wanted.place,
        "token": hold.token,
        "user": user,
        "host": host,
        "borrowed": hold.borrowed,
    }


def main() -> int:
    """Be the keeper, in the background; at once fine if there is one."""
    path = wire.socket_path()
    guard = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 0
    if os.fork():
        os._exit(0)
    os.chdir("/")
    path.unlink(missing_ok=True)
    asyncio.run(Keeper().serve(str(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
