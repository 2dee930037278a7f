"""Card switches (SD multiplexers) as Labgrid gives them, and that of a virtual EVM's lab.

Labgrid's own drivers are used as they are: one that moves the card (`USBSDMuxDriver`, `USBSDWireDriver`,
`USBSDWire3Driver`) and one for the card at the host (`USBStorageDriver`), here or at an exporter.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attr
from labgrid.driver.common import Driver
from labgrid.driver.exception import ExecutionError
from labgrid.factory import target_factory

from evmperf.lab.tester import ask
from evmperf.measure.runs import folders
from evmperf.model.errors import LabError, one_line

_MEDIUM_S = 20.0
"""Seconds within which a card must be seen after it was switched to the host."""


@target_factory.reg_driver
@attr.s(eq=False)
class VirtualCardDriver(Driver):  # type: ignore[misc]
    """The card switch of a virtual EVM: beside its power switch, with the methods of Labgrid's."""

    bindings = {"port": "NetworkPowerPort"}  # noqa: RUF012  # Labgrid's form

    @Driver.check_active  # type: ignore[untyped-decorator]
    def set_mode(self, mode: str) -> None:
        """Move the card: `dut`, `host` or `off`; raises LabError."""
        ask(self.port.host, "PUT", "card/0", mode)

    @Driver.check_active  # type: ignore[untyped-decorator]
    def get_mode(self) -> str:
        """Where the card is."""
        return ask(self.port.host, "GET", "card/0")

    @Driver.check_active  # type: ignore[untyped-decorator]
    def medium(self) -> str:
        """The file that is the card; raises LabError for a file outside this user's lab: it is written to."""
        file = str(json.loads(ask(self.port.host, "GET", "status"))["card_file"])
        if not Path(file).resolve().is_relative_to(folders.state_dir().resolve()):
            raise LabError(
                f"the card switch names {file[:200]!r} as its card, which is no disk of a virtual "
                f"EVM below {folders.state_dir()}: it is not written; is EVMPERF_STATE the lab's?"
            )
        return file


class CardSwitch:
    """A switch that moves the card between board and host; raises LabError if it does not."""

    def __init__(self, target: Any, switch: Any) -> None:
        self._target, self._switch = target, switch
        self._storage: Any = next((d for d in target.drivers if hasattr(d, "write_image")), None)
        if self._storage is None and not isinstance(switch, VirtualCardDriver):
            raise LabError(
                "the board file has a card switch but no USBStorageDriver, which reaches the card "
                "at the host: add one (docs/provisioning.md)"
            )

    @classmethod
    def of(cls, target: Any) -> CardSwitch | None:
        """The card switch of a Labgrid target; None for a board without."""
        switch = next((d for d in target.drivers if hasattr(d, "set_mode")), None)
        return cls(target, switch) if switch else None

    def to(self, mode: str) -> None:
        """Move the card to `dut` or `host`, and see that it went."""
        self._target.activate(self._switch)
        try:
            self._switch.set_mode(mode)
            if not hasattr(self._switch, "get_mode"):
                return
            position = str(self._switch.get_mode())
        except (ExecutionError, subprocess.SubprocessError, OSError) as error:
            raise LabError(f"the card switch does not go to {mode}: {one_line(error, 200)}") from None
        if position != mode:
            raise LabError(
                f"the card switch was set to {mode} but is at {position}: check whether it is stuck or "
                f"another process uses it"
            )

    def medium(self) -> str:
        """The path of the card at the host, once it is there."""
        if isinstance(self._switch, VirtualCardDriver):
            return str(self._switch.medium())
        self._target.activate(self._storage)
        deadline = time.monotonic() + _MEDIUM_S
        while self._storage.get_size() == 0:
            if time.monotonic() > deadline:
                raise LabError(
                    f"the card switch brought no card to the host within {_MEDIUM_S:g} s: "
                    f"is one in it, and does it sit right?"
                )
            time.sleep(0.1)
        return str(self._storage.storage.path)

    def prefix(self) -> Sequence[str]:
        """The command that runs its last arguments where the card is; empty for here."""
        return tuple(self._storage.storage.command_prefix) if self._storage else ()

    @property
    def copy(self) -> Callable[[str, str], None] | None:
        """Writes a file to the card by Labgrid's own driver; None where the board file has none."""
        return self._written_by_labgrid if self._storage else None

    def _written_by_labgrid(self, content: str, path: str) -> None:
        try:
            self._storage.write_image(content)
        except (ExecutionError, subprocess.SubprocessError, OSError) as error:
            said = getattr(error, "output", None) or b""
            lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.startswith("dd:")]
            raise LabError(
                f"{path} was not written by Labgrid's {type(self._storage).__name__} "
                f"({one_line((lines or [error])[0], 200)}): check the card and the exporter, and write it "
                f"again"
            ) from None
