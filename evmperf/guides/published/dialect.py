"""How guides spell units (units.yaml): in row labels `(MB/s)` up to release 11.00, `(mb/s)` since."""

import enum
import functools
from collections.abc import Iterable

import msgspec

from evmperf.boards import yamlfile
from evmperf.model.units import Unit


class Dialect(enum.StrEnum):
    """Spelling of a whole guide."""

    CLASSIC = "classic"
    LOWER = "lower"


class UnitText(msgspec.Struct, frozen=True, array_like=True):
    """A unit as printed in a row label; one unit has several spellings by row."""

    unit: Unit
    classic: str
    lower: str

    def text(self, dialect: Dialect) -> str:
        """The spelling in a dialect."""
        return self.lower if dialect is Dialect.LOWER else self.classic


_SPELT = yamlfile.own("guides/published/units.yaml")
UNIT_TEXTS = msgspec.convert(_SPELT["rows"], dict[str, UnitText])
"""Spellings in row labels, by the code that `spelt` of a table's file uses."""
COLUMN_UNITS = msgspec.convert(_SPELT["columns"], dict[Unit, str])
"""How guides spell the unit of most columns, behind the title."""

_FIRST_LOWER = (11, 1)


@functools.cache
def usual_text(unit: Unit) -> str:
    """The code of a unit's usual spelling in row labels; "" for units that are in none."""
    return next((code for code, text in UNIT_TEXTS.items() if text.unit is unit), "")


def of_release(release: str, os: str) -> Dialect:
    """The dialect that a guide of this release is written in (Linux since 11.01: lower case)."""
    numbers = tuple(int(part) for part in release.split(".")[:2] if part.isdigit())
    return Dialect.LOWER if os == "Linux" and numbers >= _FIRST_LOWER else Dialect.CLASSIC


def seen_in(unit_texts: Iterable[str]) -> Dialect | None:
    """The dialect that a guide's unit spellings show; None where they are the same in both."""
    classic = {entry.classic for entry in UNIT_TEXTS.values()}
    lower = {entry.lower for entry in UNIT_TEXTS.values()}
    for text in unit_texts:
        if text in lower - classic:
            return Dialect.LOWER
        if text in classic - lower:
            return Dialect.CLASSIC
    return None
