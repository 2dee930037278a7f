"""The facts of a run: everything known about board, software, lab and image beside its figures."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from evmperf.model.errors import UsageError
from evmperf.model.units import counted

HOST_LOADED = 1.5
"""Processes a processor of the lab's host (the fact `host_load`) from which on those of a session wait."""
BOARD_LOADED = 0.5
"""Processes a CPU of a board that was found running from which on a benchmark has not all of it."""


class Facts(msgspec.Struct, kw_only=True):
    """Facts by name; what a board does not show has its default. Units are in the names, values as the
    kernel gives them. In JSON they are one flat object without the unknown ones.
    """

    evmperf: str = ""
    evmperf_revision: str = ""
    board_file: str = ""
    board_revision: str = ""
    virtual: bool | None = None
    power: str = ""
    """How the power is worked where that is not a switch."""
    night: str = ""
    """The `evmperf night` that measured the run."""
    variation: list[str] = []
    provisioned: dict[str, Any] = {}
    """The image that was put on the board."""
    lava_job: dict[str, Any] = {}
    lava_job_made_by: str = ""
    os: str = ""
    kernel: str = ""
    kernel_version: str = ""
    machine: str = ""
    model: str = ""
    serial_number: str = ""
    command_line: str = ""
    root: str = ""
    root_file_system: str = ""
    image: str = ""
    """BUILD_ID of the image."""
    uboot: str = ""
    """The first line of U-Boot's output."""
    device_tree_sha256: str = ""
    memory_kib: int | None = None
    cpus: int | None = None
    governor: str = ""
    frequency_khz: int | None = None
    temperatures_millicelsius: dict[str, int] = {}
    nvme: list[str] = []
    spi_nor: list[str] = []
    cards: list[dict[str, str]] = []
    """Of each MMC or SD card `device`, `type`, `name`, `cid` and `sectors_512`."""
    tools: dict[str, str] = {}
    """Versions by program."""
    found: dict[str, str] = {}
    """`uptime_s`, `idle_s` and `load` of a board that evmperf did not boot."""
    tester_limits: str = ""
    host_load: float | None = None
    """The lab host's highest load: processes that run or wait per processor, over a minute."""
    documents_missing: str = ""
    attempts: int | None = None
    """Boots, including failed ones."""
    broken: str = ""
    lost: str = ""
    interrupted_by: str = ""
    guide: str = ""
    """The file of an imported guide."""
    guide_sha256: str = ""
    release_from: str = ""
    unread_tables: int | None = None
    other: dict[str, object] = {}
    """A lab's own facts, those of other versions of evmperf, and values of an unexpected type."""

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The facts of a JSON object."""
        facts = cls()
        for name, value in data.items():
            try:
                setattr(facts, name, msgspec.convert(value, _TYPES[name]))
            except (KeyError, msgspec.ValidationError):
                facts.other[name] = value
        return facts

    @property
    def busy(self) -> str:
        """What else had the board's CPUs or those of the lab's host, in sentences; "" if nothing had."""
        text, cpus = self.found.get("load", ""), self.cpus or 1
        load = float(text) if re.fullmatch(r"\d{1,5}(\.\d{1,3})?", text) else 0.0
        board = f"The board was busy before evmperf measured (load {load:g} on {counted(cpus, 'CPU')}): "
        late = "what its clock measures, boot times among them, may be too long."
        host = (
            f"The lab's host was loaded ({self.host_load or 0:.1f} processes a processor): "
            f"{'a virtual board had to wait, and its figures are too low.' if self.virtual else late}"
        )
        busy = (
            f"{board}its figures are too low." * (load / cpus > BOARD_LOADED),
            host * ((self.host_load or 0) >= HOST_LOADED),
        )
        return " ".join(filter(None, busy))

    def to_dict(self) -> dict[str, object]:
        """The JSON object, in the order of the fields."""
        fields = {name: getattr(self, name) for name in _TYPES}
        return {n: value for n, value in fields.items() if value not in ("", None, [], {})} | self.other

    def __or__(self, more: "Facts") -> "Facts":
        return Facts.from_dict(self.to_dict() | more.to_dict())


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Facts) if field.name != "other"}


def given_facts(words: Sequence[str]) -> dict[str, str]:
    """Facts by name, of `--fact NAME=VALUE`; raises UsageError for a word of another form."""
    for word in words:
        if word.find("=") < 1:
            raise UsageError(f"--fact {word}: write NAME=VALUE")
    return dict(word.split("=", 1) for word in words)
