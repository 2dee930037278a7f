"""The board of a board file: a place at a coordinator, or devices of this machine."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec.structs import asdict

from evmperf.boards import yamlfile
from evmperf.boards.board import classes
from evmperf.lab.keeping import wire
from evmperf.model.errors import UsageError

DEFAULT_COORDINATOR = "127.0.0.1:20408"
"""Labgrid's own default."""

_HERE = re.compile(r"\b(127(\.\d+){3}|localhost|\[?::1\]?)\b")
_PLACE = re.compile(r"\$LG_PLACE\b|\$\{LG_PLACE\}")
_WIRES = ("SerialPort", "PowerPort")


UNTIL_TAG = "evmperf_until"
"""The tag of a place with its holder's expected end, in seconds since the epoch."""
LOCKS_TAG = "evmperf_locks"
"""The tag of a place with the lock folder that shows whether the holder lives, and its name. A keeper
removes it before it releases a place: a free place with the tag had its holder kicked when it changed last.
"""

_Text = Annotated[str, msgspec.Meta(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]  # to the year 5138


class Wanted(msgspec.Struct, frozen=True):
    """A board to hold by its displayed name; without a coordinator (""), its `devices` are locked."""

    place: str
    coordinator: str = ""
    devices: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Alternative places; `place` then becomes the one that is held."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a board: Labgrid's host and user, and the run, "" if by hand."""

    host: _Text
    user: _Text
    run: _Text = ""

    @classmethod
    def here(cls, run: str) -> Self:
        """This user on this host, named as by Labgrid's client."""
        host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
        return cls(host, os.environ.get("LG_USERNAME") or getpass.getuser(), run)

    @classmethod
    def named(cls, acquired: str) -> Holder:
        """The holder of a name at the coordinator."""
        host, _, user = acquired.partition("/")
        user, _, run = user.partition("+")
        return Holder(host, user, run)

    @property
    def labgrid_user(self) -> str:
        """The user's name at the coordinator: two runs of one user are two holders."""
        return f"{self.user}+{self.run}" if self.run else self.user

    @property
    def by_hand(self) -> str:
        """This user's name in `labgrid-client acquire`."""
        return f"{self.host}/{self.user}"

    @property
    def by(self) -> str:
        """The displayed form, without the run."""
        return f"{self.user} on {self.host}"

    def __str__(self) -> str:
        """The displayed form."""
        return self.by + (f" (run {self.run})" if self.run else "")


class HoldRecord(Holder, frozen=True, kw_only=True):
    """A held board as other processes see it; times in seconds since the epoch, 0 if unknown. Decoding
    checks it: any user may write the locks' files.
    """

    place: _Text
    coordinator: _Text
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
        return cls(**asdict(holder), place=name, coordinator=coordinator, since=changed, until=end)


def clock(seconds: float) -> str:
    """A time of day, with the date unless it is today."""
    then, now = time.localtime(seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def who_holds(record: HoldRecord | None) -> str:
    """The holder, since when and until when, as the end of a sentence."""
    if record is None or not record.user:
        return "held by an unknown user"
    since = f" since {clock(record.since)}" if record.since else ""
    return f"held by {record}{since}" + (
        f", expected to end at {clock(record.until)}" if record.until else ""
    )


def refusal(place: str, record: HoldRecord | None) -> str:
    """Why a board is unavailable, and the remedy."""
    return f"{place} is {who_holds(record)}: wait for it with --wait 30m"


def placement(board_file: Path, coordinator: str = "", place: str = "") -> Wanted:
    """What to hold for this board file; `coordinator` goes before the file's and $LG_COORDINATOR, `place`
    before $LG_PLACE. Raises UsageError for a file without a resource.
    """
    data = yamlfile.read(board_file)
    resources = classes(data["targets"]["main"].get("resources"))
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
    described = ((kind, json.dumps(dict(words), sort_keys=True, default=str)) for kind, words in wires)
    keys = (device_key(os.path.expandvars(f"{kind} {words}")) for kind, words in described)
    return Wanted(board_file.stem, devices=tuple(sorted(keys)))


def coordinator_address(stated: str) -> str:
    """HOST:PORT of a coordinator, completed with Labgrid's defaults."""
    if not stated:
        return DEFAULT_COORDINATOR
    return stated if re.search(r":\d+$", stated) else f"{stated}:20408"


def device_key(text: str) -> str:
    """The name of a lock, with the network namespace for loopback addresses."""
    return f"{text} in network {wire.network()}" if _HERE.search(text) else text
