"""The board of a board file: a place at a coordinator, or devices of this machine; and who holds one."""

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Annotated

import msgspec

from evmperf.boards import yamlfile
from evmperf.boards.board import classes, target_of
from evmperf.model.errors import UsageError

_WIRES = ("SerialPort", "PowerPort")
_Text = Annotated[str, msgspec.Meta(max_length=500, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e11)]  # to the year 5138


class Wanted(msgspec.Struct, frozen=True):
    """A board to hold by its displayed name: a place at a coordinator, or `devices` of this machine."""

    place: str
    coordinator: str = ""
    devices: tuple[str, ...] = ()
    file: str = ""
    """The board file, for Labgrid's options of the connection."""

    @property
    def locked(self) -> tuple[str, ...]:
        """What is locked on this machine."""
        return self.devices or (f"place {self.place} at {self.coordinator}",)

    @property
    def token(self) -> str:
        """What a holder tells a process that it starts for this board."""
        # Devices may be named with a password, which is nothing for an environment.
        return hashlib.sha256("\n".join(self.locked).encode()).hexdigest()[:16]


class HoldRecord(msgspec.Struct, frozen=True):
    """A held board, and its holder as Labgrid names one: HOST/USER, with +RUN unless it is held by hand.
    Times in seconds since the epoch, 0 if unknown. Decoding checks it: any user may write the locks' files.
    """

    holder: _Text
    place: _Text
    coordinator: _Text = ""
    since: _Seconds = 0.0
    until: _Seconds = 0.0
    doing: _Text = ""

    @property
    def run(self) -> str:
        """The holder's run, "" if it is held by hand."""
        return self.holder.partition("+")[2]

    @property
    def by(self) -> str:
        """The displayed holder, without the run."""
        host, _, user = self.holder.partition("+")[0].partition("/")
        return f"{user} on {host}"

    def __str__(self) -> str:
        """The displayed holder."""
        return self.by + (f" (run {self.run})" if self.run else "")


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Within it, the environment has these variables."""
    before = {name: os.environ.get(name) for name in values}
    try:
        os.environ |= values
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def clock(seconds: float) -> str:
    """A time of day, with the date unless it is today."""
    then, now = time.localtime(seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def refusal(place: str, record: HoldRecord | None) -> str:
    """Why a board is unavailable: its holder, since when and until when; and the remedy."""
    who = str(record) if record else "an unknown user"
    since = f" since {clock(record.since)}" if record and record.since else ""
    until = f", expected to end at {clock(record.until)}" if record and record.until else ""
    return f"{place} is held by {who}{since}{until}: wait for it with --wait 30m"


def placement(board_file: Path, coordinator: str = "", place: str = "") -> Wanted:
    """What to hold for this board file; `coordinator` goes before the file's and $LG_COORDINATOR, `place`
    before $LG_PLACE. A board without resources, as QEMU's, is its file.

    Raises UsageError for a place without a name.
    """
    target, content = target_of(board_file)
    resources = classes(content.get("resources"))
    for kind, arguments in resources:
        if kind == "RemotePlace":
            stated = (yamlfile.read(board_file).get("options") or {}).get("coordinator_address")
            address = coordinator or stated or os.environ.get("LG_COORDINATOR", "")
            chosen = {"LG_PLACE": place} if place else {}
            name = Template(str(arguments.get("name", ""))).safe_substitute(os.environ, **chosen)
            if not name:
                where = f"{board_file}: targets.{target}.resources.RemotePlace.name"
                raise UsageError(f"{where} is missing: it is the board's place at the coordinator")
            return Wanted(name, coordinator_address(os.path.expandvars(address)), file=str(board_file))
    # Shared resources (a web server for images) are not locked.
    wires = [entry for entry in resources if entry[0].endswith(_WIRES)] or resources
    described = [f"{kind} {json.dumps(dict(words), sort_keys=True, default=str)}" for kind, words in wires]
    keys = (os.path.expandvars(text) for text in described or [f"file {board_file.absolute()}"])
    return Wanted(board_file.stem, devices=tuple(sorted(keys)))


def coordinator_address(stated: str) -> str:
    """HOST:PORT of a coordinator, completed with Labgrid's defaults."""
    address = stated or "127.0.0.1"
    return address if re.search(r":\d+$", address) else f"{address}:20408"
