"""The board of a board file: a place at a coordinator, or devices of this machine."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

import msgspec

from evmperf.boards import yamlfile
from evmperf.boards.board import classes, target_of
from evmperf.model.errors import UsageError

_WIRES = ("SerialPort", "PowerPort")


class Wanted(msgspec.Struct, frozen=True):
    """A board to hold by its displayed name: a place at a coordinator, or `devices` of this machine."""

    place: str
    coordinator: str = ""
    devices: tuple[str, ...] = ()
    file: str = ""
    """The board file, for Labgrid's options of the connection."""

    @property
    def locks(self) -> list[str]:
        """The names of its locks here, in one order: of sessions that start at once one gets all."""
        words = self.devices or (f"place {self.place} at {self.coordinator}",)
        # Devices may be named with a password.
        return sorted({hashlib.sha256(word.encode()).hexdigest()[:16] for word in words})


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
            said = coordinator or stated or os.environ.get("LG_COORDINATOR") or "127.0.0.1"
            address = os.path.expandvars(said)
            port = "" if re.search(r":\d+$", address) else ":20408"  # as Labgrid
            chosen = {"LG_PLACE": place} if place else {}
            name = Template(str(arguments.get("name", ""))).safe_substitute(os.environ, **chosen)
            if not name:
                where = f"{board_file}: targets.{target}.resources.RemotePlace.name"
                raise UsageError(f"{where} is missing: it is the board's place at the coordinator")
            # Labgrid reads no file whose $LG_PLACE is missing.
            return Wanted(name, address + port, file="" if "$" in name else str(board_file))
    # Shared resources (a web server for images) are not locked.
    wires = [entry for entry in resources if entry[0].endswith(_WIRES)] or resources
    described = [f"{kind} {json.dumps(dict(words), sort_keys=True, default=str)}" for kind, words in wires]
    keys = (os.path.expandvars(text) for text in described or [f"file {board_file.absolute()}"])
    return Wanted(board_file.stem, devices=tuple(keys))
