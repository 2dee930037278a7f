"""Labgrid's own client session of this process: it takes, watches and releases places.

`RemotePlaceManager` starts it, as for the targets of this process, which use it, too: Labgrid alone decides
how its coordinator is reached (proxy, TLS). A coordinator takes one session from a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
from labgrid import Environment
from labgrid.config import Config
from labgrid.exceptions import InvalidConfigError
from labgrid.remote import client
from labgrid.remote.common import Place, ReservationState
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.resource.remote import RemotePlaceManager
from labgrid.util.proxy import ProxyError

from evmperf.lab.keeping.wanted import HoldRecord, refusal, variables
from evmperf.model.errors import LabError, UsageError

_ANSWER_S = 30.0
"""An acquire waits for the exporter, at most 10 s for each resource."""
_NO_MORE = (ReservationState.expired.value, ReservationState.invalid.value)
_open: list[CoordinatorSession] = []
"""At most one: Labgrid reaches one coordinator from a process."""
_connecting = threading.Lock()


def connect(
    address: str, board_file: str = "", environment: Mapping[str, str] | None = None
) -> CoordinatorSession:
    """This process's session at a coordinator, until each caller has closed it; it has the name that the
    `environment` of the first says. Raises LabError, or UsageError for the board file or another coordinator.
    """
    with _connecting, variables(environment or {}):
        if _open and _open[0].ended:
            _open[0].stop()
        if not _open:
            _open.append(CoordinatorSession(address, board_file))
        session = _open[0]
        if session.address != address:
            raise UsageError(f"{address} and {session.address}: boards of two coordinators need two calls")
        session.users += 1
        return session


class _Refused(LabError):
    """The coordinator answers that it does not do it."""


class CoordinatorSession:
    """A session at a coordinator. In its own thread it calls the `watchers` of a place with the holder after
    each change ("" for nobody), and all with None when the coordinator is gone.
    """

    def __init__(self, address: str, board_file: str) -> None:
        self.users, self.ended, self.address = 0, False, address
        self.watchers: dict[str, Callable[[str | None], None]] = {}
        manager = RemotePlaceManager.get()
        logging.getLogger().addFilter(_by_us)
        try:
            manager.url, manager.env = address, _Options(board_file) if board_file else None
            contextvars.Context().run(manager._start)  # with an event loop of its own
        except InvalidConfigError as error:
            raise UsageError(str(error)) from None
        except (client.ServerError, ProxyError, OSError, ValueError) as error:
            raise LabError(
                f"no Labgrid coordinator answers at {address} ({' '.join(map(str, error.args))}): check "
                f"LG_COORDINATOR, and that labgrid-coordinator runs there"
            ) from None
        self._session = manager.session
        self.name = f"{self._session.gethostname()}/{self._session.getuser()}"
        """The holder's name as the coordinator writes it into a place."""
        self._on_place_changed = self._session.on_place_changed
        self._session.on_place_changed = self._changed
        self._thread = threading.Thread(target=self._session.loop.run_forever, name="labgrid", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._await_end(), self._session.loop)

    def record(self, place: Place) -> HoldRecord:
        """Who holds a place that is acquired."""
        return HoldRecord(place.acquired, place.name, self.address, place.changed)

    def held(self) -> list[HoldRecord]:
        """Who holds which place."""
        return [self.record(place) for place in self._session.places.values() if place.acquired]

    def find(self, pattern: str) -> Place:
        """The place of that name, alias or pattern; raises UsageError with the nearest one."""
        try:
            return self._session.get_place(pattern)
        except client.UserError as error:
            raise UsageError(
                f"{' '.join(error.args)} at the coordinator {self.address}: "
                f"`labgrid-client -x {self.address} places` lists its places"
            ) from None

    def acquire(self, name: str) -> str:
        """Acquire a place; returns why it cannot be had. Raises LabError if its devices are missing."""
        place, refused = self.find(name), ""
        try:
            self._do(self._session.stub.AcquirePlace, pb.AcquirePlaceRequest(placename=name))
        except _Refused as error:
            refused = str(error)
        self._do(self._session.sync_with_coordinator)  # changes arrive on another stream
        if "acquire resources" in refused:
            raise LabError(
                f"Labgrid could not take the devices of place {name} ({refused}): look at "
                f"`labgrid-client -p {name} show` and at its exporter"
            )
        if refused:
            other = f"{name} is unavailable ({refused}): wait for it with --wait 30m"
            return refusal(name, self.record(place)) if place.acquired else other
        if not place.acquired_resources:
            self.release(name)
            raise LabError(
                f"the place {name} has no devices: its exporter is not connected, or no match fits "
                f"(`labgrid-client resources`, `labgrid-client -p {name} show`)"
            )
        return ""

    def release(self, name: str, holder: str = "") -> None:
        """Release a place if this session or that holder has it."""
        request = pb.ReleasePlaceRequest(placename=name, fromuser=holder or self.name)
        with contextlib.suppress(LabError):
            self._do(self._session.stub.ReleasePlace, request)

    def queue(self, name: str, priority: float, token: str) -> str:
        """Stay in the queue for a place, whose reservation expires after 60 s; returns the new token."""
        stub = self._session.stub
        with contextlib.suppress(_Refused):
            if token:
                polled = self._do(stub.PollReservation, pb.PollReservationRequest(token=token))
                if polled.reservation.state not in _NO_MORE:
                    return token
        request = pb.CreateReservationRequest(prio=priority)
        request.filters["main"].filter["name"] = name
        return str(self._do(stub.CreateReservation, request).reservation.token)

    def leave_queue(self, token: str) -> None:
        """Cancel the reservation."""
        with contextlib.suppress(LabError):
            self._do(self._session.stub.CancelReservation, pb.CancelReservationRequest(token=token))

    def close(self) -> None:
        """End the session with its last user; held places stay held."""
        with _connecting:
            self.users -= 1
            if not self.users:
                self.stop()

    def stop(self) -> None:
        """End the session; a second call does nothing."""
        if self in _open:
            _open.remove(self)
            RemotePlaceManager.get().session = None
            self._session.stopping.set()
            with contextlib.suppress(Exception):
                self._do(self._session.stop)
                self._do(self._session.close)
            self._session.loop.call_soon_threadsafe(self._session.loop.stop)
            self._thread.join()

    async def _changed(self, place: Any) -> None:
        await self._on_place_changed(place)
        if watcher := self.watchers.get(place.name):
            watcher(place.acquired if place.HasField("acquired") else "")

    async def _await_end(self) -> None:
        await self._session.stopping.wait()
        self.ended = True
        for watcher in list(self.watchers.values()):
            watcher(None)

    def _do(self, call: Callable[..., Awaitable[Any]], *request: Any) -> Any:
        """The coordinator's answer; raises LabError where there is none, _Refused for its reason."""

        async def limited() -> Any:
            async with asyncio.timeout(_ANSWER_S):  # Labgrid waits for ever when its stream has ended
                return await call(*request)

        with contextlib.suppress(TimeoutError):
            try:
                return asyncio.run_coroutine_threadsafe(limited(), self._session.loop).result()
            except grpc.aio.AioRpcError as error:
                if not self.ended and error.code() is not grpc.StatusCode.UNAVAILABLE:
                    reason = error.details() or error.code().name
                    raise _Refused(f"the coordinator {self.address} refuses: {reason}") from None
        raise LabError(f"the coordinator {self.address} does not answer any more")


class _Options(Environment):  # type: ignore[misc]
    """The board file's options for Labgrid, without its imports: a process can import those once."""

    def __attrs_post_init__(self) -> None:
        self.targets: dict[str, object] = {}
        self.config = Config(self.config_file)


def _by_us(record: logging.LogRecord) -> bool:
    """Whether a message is not one of Labgrid's session, whose ends are reported in a sentence."""
    return bool(record.pathname != client.__file__)
