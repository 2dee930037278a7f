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

import msgspec

from evmperf.lab.keeping import wire
from evmperf.lab.keeping.locks import Busy
from evmperf.lab.keeping.taking import Hold, Taking
from evmperf.lab.keeping.wanted import UNTIL_TAG, Holder, Wanted, who_holds
from evmperf.model.errors import EvmperfError, LabError

IDLE_S = 5.0
"""How long the keeper stays without clients, in seconds."""

_MOVED_S = 60.0
"""Smaller changes of an expected end are not sent to the coordinator (seconds)."""


_MESSAGES = msgspec.json.Decoder(dict[str, object])


class Client:
    """A process that is connected to the keeper."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.holds: list[Hold] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def send(self, **message: object) -> None:
        """Send a message; another task notices a lost client."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(wire.encode(message))


class Keeper:
    """All holds of this host and user, and the connections behind them."""

    def __init__(self) -> None:
        self._clients: set[Client] = set()
        self._taking = Taking()
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
        for hold in list(self._taking.holds):
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
                task = asyncio.create_task(self._answer(client, _MESSAGES.decode(line)))
                client.tasks.add(task)
                task.add_done_callback(client.tasks.discard)
        except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
            print(f"a client sent an invalid message: {error}", file=sys.stderr, flush=True)
        finally:
            for task in list(client.tasks):
                task.cancel()
            await asyncio.gather(*client.tasks, return_exceptions=True)
            await self._do_release(client)
            self._clients.discard(client)
            self._needed = time.monotonic()
            writer.close()

    async def _answer(self, client: Client, message: dict[str, object]) -> None:
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
        wanted: dict[str, object],
        holder: dict[str, str],
        until: float,
        wait_s: float,
        priority: float,
    ) -> dict[str, object]:
        """Hold a board after a limited wait."""
        who, deadline = msgspec.convert(holder, Holder), time.monotonic() + wait_s
        board = msgspec.convert(wanted, Wanted)
        hold = Hold(board, who, until, deadline, priority)
        hold.parties.add(client.send)
        await self._taking.take(hold)
        return await self._do_join(client, hold.token)

    async def _do_join(self, client: Client, token: str) -> dict[str, object]:
        """Share a board that another process holds for this one."""
        for hold in self._taking.holds:
            if hold.token == token:
                hold.parties.add(client.send)
                client.holds.append(hold)
                user = hold.holder.user if hold.borrowed else hold.holder.labgrid_user
                facts = {"place": hold.board.place, "token": hold.token, "borrowed": hold.borrowed}
                return {**facts, "user": user, "host": hold.holder.host}
        raise LabError("the night no longer holds this session's board")

    async def _do_check(self, client: Client) -> dict[str, object]:
        for hold in client.holds:
            if hold.locks and not hold.lost:
                try:
                    hold.locks.keep()
                except Busy as busy:
                    hold.lose(f"{hold.board.place} is {who_holds(busy.holder)}: our lock was deleted")
        return {"lost": next((hold.lost for hold in client.holds if hold.lost), "")}

    async def _do_doing(self, client: Client, what: str, until: float) -> dict[str, object]:
        """Note what a client measures, and its expected end."""
        for hold in client.holds:
            hold.doing = what
            moved = until and abs(until - hold.until) > _MOVED_S
            hold.until = until if moved else hold.until
            if moved and hold.connection and not hold.borrowed and not hold.lost:
                with contextlib.suppress(LabError):
                    await hold.connection.tag(hold.board.place, {UNTIL_TAG: f"{until:.0f}"})
            if hold.locks:
                hold.locks.describe(hold.record())
        return {}

    async def _do_release(self, client: Client) -> dict[str, object]:
        for hold in list(client.holds):
            client.holds.remove(hold)
            hold.parties.discard(client.send)
            if not hold.parties:
                await self._taking.let_go(hold)
        return {}

    async def _do_places(self, client: Client, coordinator: str) -> dict[str, object]:
        """The places of a coordinator."""
        connection = await self._taking.visit(coordinator)
        return {
            "places": [
                {
                    "name": place.name,
                    "tags": place.tags,
                    "acquired": place.acquired or "",
                    "changed": place.changed,
                    "ready": connection.has_devices(place),
                }
                for place in connection.places()
            ]
        }

    async def _do_tag(
        self, client: Client, coordinator: str, place: str, tags: dict[str, str]
    ) -> dict[str, object]:
        connection = await self._taking.visit(coordinator)
        await connection.tag(connection.find(place).name, tags)
        return {}


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
