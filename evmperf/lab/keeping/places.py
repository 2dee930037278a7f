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
from labgrid.remote.common import Place
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.resource.remote import RemotePlaceManager
from labgrid.util.proxy import ProxyError

from evmperf.lab.keeping.locks import Busy, holding
from evmperf.lab.keeping.wanted import Wanted, variables
from evmperf.model.errors import LabError, UsageError

_ANSWER_S = 30.0
"""An acquire waits for the exporter, at most 10 s for each resource; Labgrid waits for ever when its stream
has ended.
"""
_sessions: list[CoordinatorSession] = []
"""The last one goes on until this process or the coordinator ends."""
_connecting = threading.Lock()
# A session's end is reported in a sentence of ours.
logging.getLogger().addFilter(lambda record: record.pathname != client.__file__)


def connect(board: Wanted, environment: Mapping[str, str]) -> CoordinatorSession:
    """This process's session at a board's coordinator, which has the name that the first `environment` says.
    Raises LabError, or UsageError for the board file or a second coordinator.
    """
    with _connecting:
        if not _sessions or _sessions[-1].ended:
            with variables(environment):
                _sessions.append(CoordinatorSession(board))
        session, address = _sessions[-1], board.coordinator
        if session.address != address:
            raise UsageError(f"{address} and {session.address}: boards of two coordinators need two calls")
        return session


class CoordinatorSession:
    """A session at a coordinator; calls its `watchers` in a thread of its own when a place has changed or the
    coordinator is gone.
    """

    def __init__(self, board: Wanted) -> None:
        self.address = address = board.coordinator
        self.watchers: set[Callable[[], None]] = set()
        manager = RemotePlaceManager.get()
        manager.session, manager.url = None, address
        try:
            manager.env = _Options(board.file) if board.file else None
            contextvars.Context().run(manager._start)  # with an event loop of its own
        except InvalidConfigError as error:
            raise UsageError(str(error)) from None
        except (client.ServerError, ProxyError, OSError, ValueError) as error:
            raise LabError(
                f"no Labgrid coordinator answers at {address} ({' '.join(map(str, error.args))}): check "
                f"LG_COORDINATOR, and that labgrid-coordinator runs there"
            ) from None
        self._session = session = manager.session
        self.name = f"{session.gethostname()}/{session.getuser()}"
        """The holder's name as the coordinator writes it into a place."""
        self._on_place_changed, session.on_place_changed = session.on_place_changed, self._changed
        session.pump_task.add_done_callback(lambda _: self._tell())
        threading.Thread(target=session.loop.run_forever, name="labgrid", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the coordinator is gone."""
        return bool(self._session.stopping.is_set())

    def held(self) -> list[str]:
        """Who holds which place."""
        places = self._session.places.values()
        return [holding(place.name, place.acquired, place.changed) for place in places if place.acquired]

    def find(self, pattern: str) -> Place:
        """The place of that name, alias or pattern; raises UsageError where there is none."""
        try:
            return self._session.get_place(pattern)
        except client.UserError as error:
            raise UsageError(
                f"{' '.join(error.args)} at the coordinator {self.address}: "
                f"`labgrid-client -x {self.address} places` lists its places"
            ) from None

    def acquire(self, place: Place) -> None:
        """Acquire a place; raises Busy if it cannot be had now, LabError without its devices."""
        refused = ""
        try:
            self._do(self._session.stub.AcquirePlace, pb.AcquirePlaceRequest(placename=place.name))
        except LabError as error:
            refused = str(error)
        self._do(self._session.sync_with_coordinator)  # changes arrive on another stream
        if refused and (holder := place.acquired or (place.reservation and "a reservation")):
            raise Busy(holding(place.name, holder, place.changed))
        if refused or not place.acquired_resources:  # an exporter that is started anew gives none at first
            why = refused or f"the place {place.name} has no devices"
            raise LabError(f"{why}: look at `labgrid-client -p {place.name} show` and at its exporter")

    def release(self, place: str, holder: str) -> None:
        """Release a place if that holder has it."""
        request = pb.ReleasePlaceRequest(placename=place, fromuser=holder)
        with contextlib.suppress(LabError):
            self._do(self._session.stub.ReleasePlace, request)

    async def _changed(self, place: Any) -> None:
        await self._on_place_changed(place)
        self._tell()

    def _tell(self) -> None:
        for watcher in list(self.watchers):
            watcher()

    def _do(self, call: Callable[..., Awaitable[Any]], *request: Any) -> Any:
        """The coordinator's answer; raises LabError where there is none, or a refusal."""

        async def asked() -> Any:
            return await call(*request)

        try:
            return asyncio.run_coroutine_threadsafe(asked(), self._session.loop).result(_ANSWER_S)
        except (TimeoutError, grpc.aio.AioRpcError) as error:
            reason = "no answer" if isinstance(error, TimeoutError) else error.details()
            raise LabError(f"the coordinator {self.address} fails ({reason})") from None


class _Options(Environment):  # type: ignore[misc]
    """The board file's options for Labgrid, without its imports: a process can import those once."""

    def __attrs_post_init__(self) -> None:
        self.targets: dict[str, object] = {}
        self.config = Config(self.config_file)
