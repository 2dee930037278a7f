"""Board files of virtual EVMs: the ports of their labs, and copies with other ports."""

import re
from pathlib import Path

from evmperf.boards import board as boards
from evmperf.boards.board import VIRTUAL_HOST
from evmperf.model.errors import UsageError
from evmperf.model.places import project


def source(variant: str) -> Path:
    """The board file that comes with a variant: `env/<variant>.yaml` of the project."""
    return project("env") / f"{variant}.yaml"


def usual_ports(name: str, serial: int | None = None, power: int | None = None) -> tuple[int, int]:
    """Serial and power port of a board: as given, else those of its file, else 0 (any free one)."""
    file = source(name)
    usual = boards.load(file).lab_ports() if file.exists() else (0, 0)
    return usual[0] if serial is None else serial, usual[1] if power is None else power


def write(original: Path, copy: Path, *, serial_port: int, power_port: int) -> None:
    """Write a copy of a board file with these ports; raises UsageError."""
    serial, power = boards.load(original).lab_ports()
    text = re.sub(rf"\b(port: ){serial}\b", rf"\g<1>{serial_port}", original.read_text())
    # The simulated meter is behind the power switch.
    text = re.sub(rf"(?<={re.escape(VIRTUAL_HOST)})(::?){power}\b", rf"\g<1>{power_port}", text)
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(
            f"# Written by `evmperf virtual start --write-env` from {original.resolve()}.\n{text}"
        )
    except OSError as error:
        raise UsageError(f"{copy} cannot be written: {error.strerror}") from None
