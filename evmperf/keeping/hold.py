"""The keeper's record of one board that somebody holds or waits for."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evmperf.keeping.wanted import Holder, HoldRecord, Wanted

if TYPE_CHECKING:
    from evmperf.keeping.locks import Locks
    from evmperf.keeping.places import Connection


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
