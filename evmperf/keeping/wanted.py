"""The board of a board file: a place at a coordinator, or devices of this machine."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from evmperf.boards import yamlfile
from evmperf.keeping import wire
from evmperf.model.errors import UsageError

DEFAULT_COORDINATOR = "127.0.0.1:20408"
"""Labgrid's own default."""

_HERE = re.compile(r"\b(127(\.\d+){3}|localhost|\[?::1\]?)\b")
_PLACE = re.compile(r"\$LG_PLACE\b|\$\{LG_PLACE\}")
_WIRES = ("SerialPort", "PowerPort")


@dataclass(frozen=True)
class Wanted:
    """A board to hold by its displayed name; without a coordinator (""), its `devices` are locked."""

    place: str
    coordinator: str = ""
    devices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Alternative places; `place` then becomes the one that is held."""

    def with_place(self, place: str) -> Wanted:
        """The same with another place."""
        return replace(self, place=place)


@dataclass(frozen=True)
class Holder:
    """Who holds a board: Labgrid's host and user, and the run."""

    host: str
    user: str
    run: str = ""

    @classmethod
    def here(cls, run: str) -> Holder:
        """This user on this host, named as by Labgrid's client."""
        host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
        return cls(host, os.environ.get("LG_USERNAME") or getpass.getuser(), run)

    @classmethod
    def named(cls, acquired: str) -> Holder:
        """The holder of a name at the coordinator."""
        host, _, user = acquired.partition("/")
        user, _, run = user.partition("+")
        return cls(host, user, run)

    @property
    def labgrid_user(self) -> str:
        """The user's name at the coordinator: two runs of one user are two holders."""
        return f"{self.user}+{self.run}" if self.run else self.user

    @property
    def by_hand(self) -> str:
        """This user's name in `labgrid-client acquire`."""
        return f"{self.host}/{self.user}"

    def __str__(self) -> str:
        """The displayed form."""
        return f"{self.user} on {self.host}" + (f" (run {self.run})" if self.run else "")


GRACE_S = 600.0
"""How long a place is reserved for a kicker who has not taken it yet, in seconds."""

UNTIL_TAG = "evmperf_until"
"""The tag of a place with its holder's expected end, in seconds since the epoch."""

_Text = Annotated[str, msgspec.Meta(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]  # to the year 5138


class HoldRecord(msgspec.Struct, frozen=True):
    """A held board as other processes see it; `run` is "" if by hand, times in seconds since the epoch, 0
    if unknown. Decoding checks it: any user may write the locks' files.
    """

    place: _Text
    coordinator: _Text
    host: _Text
    user: _Text
    run: _Text
    since: _Seconds
    until: _Seconds = 0.0
    doing: _Text = ""

    @classmethod
    def of_place(
        cls, name: str, acquired: str, changed: float, tags: Mapping[str, str], coordinator: str
    ) -> HoldRecord:
        """The record of a place at a coordinator that somebody holds by hand or by any keeper."""
        holder = Holder.named(acquired)
        until = tags.get(UNTIL_TAG, "") if holder.run else ""
        end = float(until) if until.isdecimal() and len(until) < 12 else 0.0
        return cls(name, coordinator, holder.host, holder.user, holder.run, changed, end)

    @property
    def by(self) -> str:
        """The holder, without the run."""
        return f"{self.user} on {self.host}"


def clock(seconds: float) -> str:
    """A time of day, with the date unless it is today."""
    then, now = time.localtime(seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def who_holds(record: HoldRecord | None) -> str:
    """The holder, since when and until when, as the end of a sentence."""
    if record is None or not record.user:
        return "held by an unknown user"
    text = f"held by {Holder(record.host, record.user, record.run)}"
    if record.since:
        text += f" since {clock(record.since)}"
    if record.until:
        text += f", expected to end at {clock(record.until)}"
    return text


def refusal(place: str, record: HoldRecord | None) -> str:
    """Why a board is unavailable, and the remedy."""
    return (
        f"{place} is {who_holds(record)}: wait for it with --wait 30m, or ask for it with "
        f"`evmperf ask {place} MESSAGE`"
    )


def wanted(board_file: Path, coordinator: str = "", place: str = "") -> Wanted:
    """What to hold for this board file; `coordinator` goes before the file's and $LG_COORDINATOR, `place`
    before $LG_PLACE. Raises UsageError for a file without a resource.
    """
    data = yamlfile.read(board_file)
    resources = list(_resources(data["targets"]["main"].get("resources") or {}))
    for kind, arguments in resources:
        if kind == "RemotePlace":
            stated = (data.get("options") or {}).get("coordinator_address")
            address = coordinator or stated or os.environ.get("LG_COORDINATOR", "")
            name = str(arguments.get("name", ""))
            if place:
                name = _PLACE.sub(lambda _: place, name)
            name = os.path.expandvars(name)
            if not name:
                where = f"{board_file}: targets.main.resources.RemotePlace.name"
                raise UsageError(f"{where} is missing: it is the board's place at the coordinator")
            return Wanted(name, coordinator_address(os.path.expandvars(address)))
    # Shared resources (a web server for images) are not locked.
    wires = [entry for entry in resources if entry[0].endswith(_WIRES)] or resources
    if not wires:
        raise UsageError(f"{board_file}: has no resources: add a RemotePlace")
    return Wanted(board_file.stem, devices=tuple(sorted(_key(*entry) for entry in wires)))


def coordinator_address(stated: str) -> str:
    """HOST:PORT of a coordinator, completed with Labgrid's defaults."""
    if not stated:
        return DEFAULT_COORDINATOR
    return stated if re.search(r":\d+$", stated) else f"{stated}:20408"


def _resources(stated: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Kind and arguments of each resource, in either form that Labgrid accepts."""
    for entry in stated if isinstance(stated, list) else [stated]:
        for kind, arguments in entry.items():
            yield str(kind), dict(arguments or {})


def _key(kind: str, arguments: dict[str, Any]) -> str:
    said = json.dumps(arguments, sort_keys=True, default=str)
    return device_key(os.path.expandvars(f"{kind} {said}"))


def device_key(text: str) -> str:
    """The name of a lock, with the network namespace for loopback addresses."""
    return f"{text} in network {wire.network()}" if _HERE.search(text) else text
