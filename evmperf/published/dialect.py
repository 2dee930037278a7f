"""How guides spell units in row labels: `(MB/s)` up to release 11.00, `(mb/s)` since.

Source of the spellings: the five guides of releases 9 to 11.01 (guide inventory, `units`).
"""

import enum
import functools
from collections.abc import Iterable
from dataclasses import dataclass

from evmperf.model.units import Unit


class Dialect(enum.StrEnum):
    """Spelling of a whole guide."""

    CLASSIC = "classic"
    LOWER = "lower"


@dataclass(frozen=True)
class UnitText:
    """A unit as printed in a row label; one unit has several spellings by row."""

    unit: Unit
    classic: str
    lower: str

    def text(self, dialect: Dialect) -> str:
        """The spelling in a dialect."""
        return self.lower if dialect is Dialect.LOWER else self.classic


UNIT_TEXTS = {
    "MB_s": UnitText(Unit.MEGABYTE_PER_SECOND, "MB/s", "mb/s"),
    # The backslash is an escape, so that HTML shows "mbs".
    "MB_s_bs": UnitText(Unit.MEGABYTE_PER_SECOND, "MBs", r"mb\s"),
    "ns": UnitText(Unit.NANOSECOND, "ns", "ns"),
    "us": UnitText(Unit.MICROSECOND, "us", "us"),
    "us_long": UnitText(Unit.MICROSECOND, "microsec", "microsec"),
    "ns_long": UnitText(Unit.NANOSECOND, "nanosec", "nanosec"),
    "num_files": UnitText(Unit.FILES, "num_files", "num_files"),
    "MHz": UnitText(Unit.MEGAHERTZ, "MHz", "mhz"),
    "DMIPS_MHz": UnitText(Unit.DMIPS_PER_MEGAHERTZ, "DMIPS/MHz", "dmips/mhz"),
    "dhry_s": UnitText(Unit.DHRYSTONES_PER_SECOND, "DhrystoneP", "dhrystonep"),
    "MWIPS": UnitText(Unit.MWIPS, "MIPS", "mips"),
    "kflops": UnitText(Unit.KILOFLOPS, "Kflops", "kflops"),
    "iter_s": UnitText(Unit.ITERATIONS_PER_SECOND, "Iterations", "iterations"),
    "wl_s": UnitText(Unit.WORKLOADS_PER_SECOND, "workloads/", "workloads/"),
    "score": UnitText(Unit.SCORE, "", ""),
}
"""By the code that `row_units` of a table's declaration uses."""

COLUMN_UNITS = {
    Unit.MEGABYTE_PER_SECOND: "(Mbytes/sec)",
    Unit.MEBIBYTE_PER_SECOND: "(Mbytes/sec)",
    Unit.KIBIBYTE_PER_SECOND: "(Kbytes/sec)",
    Unit.KILOBYTE_PER_SECOND: "(KBytes/Sec)",
    Unit.MEGABIT_PER_SECOND: "(Mbits/sec)",
    Unit.BIT_PER_SECOND: "(bits/sec)",
    Unit.PERCENT: "(%)",
}
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
