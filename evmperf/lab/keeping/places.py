"""The keeper's connection to Labgrid's coordinator, in the name of one holder.

Labgrid's own ClientSession does the talking. The coordinator identifies clients by
connection. gRPC would share one between the sessions of a process, so each has its own channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.common import Place, ReservationState
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc as rpc
from labgrid.util.proxy import proxymanager

from evmperf.lab.keeping.wanted import Holder
from evmperf.model.errors import LabError, UsageError

_ANSWER_S = 30.0
"""An acquire waits for the exporter, at most 10 s for each resource."""

_NO_MORE = (ReservationState.expired.value, ReservationState.invalid.value)

_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    # As Labgrid's own client: a coordinator that is cut off is noticed after 18 s.
    ("grpc.keepalive_time_ms", 7500),
    ("grpc.keepalive_timeout_ms", 10000),
    ("grpc.http2.ping_timeout_ms", 10000),
    ("grpc.http2.max_pings_without_data", 0),
]


class TakenAway(Exception):
    """Somebody else holds the place, or it is reserved for somebody else."""


class _Session(ClientSession):  # type: ignore[misc]
    """Labgrid's session with the holder's name; it reports changes of places."""

    holder = Holder("", "")
    notify: Callable[[str], None] = staticmethod(lambda place: None)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self.channel = grpc.aio.insecure_channel(self.address, options=_OPTIONS)
        self.stub = rpc.CoordinatorStub(self.channel)

    def gethostname(self) -> str:
        """The holder's host."""
        return self.holder.host

    def getuser(self) -> str:
        """The holder's name at the coordinator."""
        return self.holder.labgrid_user

    async def on_place_changed(self, place_pb2: Any) -> None:
        """Store the record, then report the change."""
        await super().on_place_changed(place_pb2)
        self.notify(place_pb2.name)

    async def on_place_deleted(self, name: str) -> None:
        """Store the record, then report the change."""
        await super().on_place_deleted(name)
        self.notify(name)


class Connection:
    """One holder at one coordinator; `on_change` gets changed places, `on_gone` the coordinator's loss."""

    def __init__(
        self,
        address: str,
        holder: Holder,
        on_change: Callable[[Connection, str], None],
        on_gone: Callable[[Connection], None],
    ) -> None:
        self.address = address
        self.holder = holder
        self._on_change, self._on_gone = on_change, on_gone
        self.name = f"{holder.host}/{holder.labgrid_user}"
        """The holder's name as the coordinator writes it into a place."""
        self._session: Any = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Whether the coordinator answers."""
        return self._session is not None and not self._session.stopping.is_set()

    async def open(self) -> None:
        """Connect; raises LabError."""
        loop = asyncio.get_running_loop()
        try:
            address = proxymanager.get_grpc_address(self.address, default_port=20408)
            session = _Session(address, loop)
            session.holder = self.holder
            session.notify = lambda place: self._on_change(self, place)
            async with asyncio.timeout(_ANSWER_S):
                await session.start()
        except (ServerError, OSError, ValueError, TimeoutError) as error:
            raise LabError(
                f"no Labgrid coordinator answers at {self.address} "
                f"({' '.join(getattr(error, 'args', ())) or type(error).__name__}): check "
                f"LG_COORDINATOR, and that labgrid-coordinator runs there"
            ) from None
        self._session = session

        async def await_end() -> None:
            await session.stopping.wait()
            self._on_gone(self)

        self._watch = loop.create_task(await_end())

    async def close(self) -> None:
        """Disconnect; held places stay held."""
        if self._watch:
            self._watch.cancel()
        if self._session:
            self._session.stopping.set()
            with contextlib.suppress(Exception):
                await self._session.stop()
            await self._session.close()

    def places(self) -> list[Place]:
        """All places, by name."""
        return [place for _, place in sorted(self._session.places.items())]

    def find(self, name: str) -> Place:
        """The place of that name or alias; raises UsageError with the nearest one."""
        for place in self.places():
            if name == place.name or name in place.aliases:
                return place
        names = sorted(self._session.places)
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}."
        raise UsageError(
            f"there is no place {name!r} at the coordinator {self.address}: {hint} "
            f"`labgrid-client -x {self.address} places` lists them"
        )

    async def acquire(self, name: str) -> None:
        """Acquire a place; raises TakenAway, or LabError if its devices are missing."""
        try:
            await self._ask("AcquirePlace", pb.AcquirePlaceRequest(placename=name))
        except grpc.aio.AioRpcError as error:
            reason = error.details() or error.code().name
            if "resources" in reason:
                raise LabError(
                    f"Labgrid could not take the devices of place {name} ({reason}): look at "
                    f"`labgrid-client -p {name} show` and at its exporter"
                ) from None
            raise TakenAway(reason) from None
        # The change of the place arrives on another stream than the answer.
        await self._session.sync_with_coordinator()
        if not self.find(name).acquired_resources:
            await self.release(name)
            raise LabError(
                f"the place {name} has no devices: its exporter is not connected, or no match fits "
                f"(`labgrid-client resources`, `labgrid-client -p {name} show`)"
            )

    def has_devices(self, place: Place) -> bool:
        """Whether an exporter offers something for the place now."""
        return any(
            resource.data.get("avail") and place.hasmatch((exporter, group, resource.cls, name))
            for exporter, groups in self._session.resources.items()
            for group, resources in groups.items()
            for name, resource in resources.items()
        )

    async def release(self, name: str, owner: str = "") -> None:
        """Release a place if it still belongs to us or to that owner."""
        request = pb.ReleasePlaceRequest(placename=name, fromuser=owner or self.name)
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._ask("ReleasePlace", request)

    async def tag(self, name: str, tags: Mapping[str, str]) -> None:
        """Set tags of a place ("" removes one); raises LabError."""
        try:
            await self._ask("SetPlaceTags", pb.SetPlaceTagsRequest(placename=name, tags=tags))
        except grpc.aio.AioRpcError as error:
            raise LabError(f"the tags of place {name} cannot be set: {error.details()}") from None

    async def reserve(self, name: str, priority: float) -> str:
        """Queue for a place; returns the reservation's token."""
        request = pb.CreateReservationRequest(prio=priority)
        request.filters["main"].filter["name"] = name
        answer = await self._ask("CreateReservation", request)
        return str(answer.reservation.token)

    async def is_our_turn(self, token: str) -> bool | None:
        """Whether the place is ours now; None if the reservation was cancelled or expired (60 s)."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            answer = await self._ask("PollReservation", pb.PollReservationRequest(token=token))
            if answer.reservation.state not in _NO_MORE:
                return bool(answer.reservation.allocations)
        return None

    async def give_up(self, token: str) -> None:
        """Cancel the reservation."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._ask("CancelReservation", pb.CancelReservationRequest(token=token))

    async def _ask(self, method: str, request: Any) -> Any:
        return await getattr(self._session.stub, method)(request, timeout=_ANSWER_S)
