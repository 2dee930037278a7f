"""The keeper's record of one board that somebody holds or waits for."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from evmperf.keeping.wanted import Holder, Wanted

if TYPE_CHECKING:
    from evmperf.keeping.locks import Locks
    from evmperf.keeping.places import Connection


UNTIL_TAG = "evmperf_until"
"""The tag of a place with its holder's expected end, in seconds since the epoch."""


class Party(Protocol):
    """A process that holds a board or asks for one."""

    def send(self, **message: Any) -> None:
        """Send it a message."""


@dataclass(eq=False)
class Hold:
    """A board that is held, waited for, or lost. Times are seconds since the epoch, 0 if unknown.

    All `parties` share it: a night and the session that measures for it. `owner` is the holder's
    name at the coordinator; if `borrowed`, the name of the user's `labgrid-client acquire`.
    """

    wanted: Wanted
    holder: Holder
    until: float = 0.0
    grace_s: float = 0.0
    """How long a kicked place is reserved for the person who kicked its holder, in seconds."""
    doing: str = ""
    since: float = field(default_factory=time.time)
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    parties: set[Party] = field(default_factory=set)
    owner: str = ""
    borrowed: bool = False
    locks: Locks | None = None
    connection: Connection | None = None
    lost: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def record(self) -> dict[str, Any]:
        """The record for other processes."""
        return {
            "place": self.wanted.place,
            "coordinator": self.wanted.coordinator,
            "host": self.holder.host,
            "user": self.holder.user,
            "run": self.holder.run,
            "since": self.since,
            "until": self.until,
            "doing": self.doing,
        }

    def lose(self, why: str, *, taken: bool = True) -> None:
        """Report the loss to all parties; `taken` if no further message will follow."""
        self.lost = why
        for party in list(self.parties):
            party.send(lost=why, taken=taken)


def of_place(
    name: str, acquired: str, changed: float, tags: Mapping[str, str], coordinator: str
) -> dict[str, Any]:
    """The record of a place that somebody holds by hand or through any host's keeper."""
    holder = Holder.named(acquired)
    until = tags.get(UNTIL_TAG, "") if holder.run else ""
    return {
        "place": name,
        "coordinator": coordinator,
        "host": holder.host,
        "user": holder.user,
        "run": holder.run,
        "since": changed,
        "until": float(until) if until.isdecimal() and len(until) < 12 else 0.0,
        "doing": "",
    }


def clock(seconds: float) -> str:
    """A time of day, with the date unless it is today."""
    then, now = time.localtime(seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def who_holds(record: Mapping[str, Any]) -> str:
    """The holder, since when and until when, as the end of a sentence."""
    if not record.get("user"):
        return "held by an unknown user"
    holder = Holder(str(record.get("host")), str(record["user"]), str(record.get("run") or ""))
    text = f"held by {holder}"
    if record.get("since"):
        text += f" since {clock(record['since'])}"
    if record.get("until"):
        text += f", expected to end at {clock(record['until'])}"
    return text


def refusal(place: str, record: Mapping[str, Any]) -> str:
    """Why a board is unavailable, and the remedy."""
    return (
        f"{place} is {who_holds(record)}: wait for it with --wait 30m, or ask for it with "
        f"`evmperf ask {place} MESSAGE`"
    )
