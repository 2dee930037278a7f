"""Units of what is measured, by their standard names: `MB` is 10^6 bytes and `KiB` 2^10 bytes, as in the
guides. Conversion happens in parsers only.
"""

import enum
import re

from evmperf.model.errors import UsageError


class Unit(enum.StrEnum):
    """Canonical unit names; the text a guide prints for each is the guide's matter."""

    SECOND = "s"
    MILLISECOND = "ms"
    MICROSECOND = "us"
    NANOSECOND = "ns"
    MEGAHERTZ = "MHz"
    BYTE = "B"
    KILOBYTE_PER_SECOND = "kB/s"
    MEGABYTE_PER_SECOND = "MB/s"
    KIBIBYTE_PER_SECOND = "KiB/s"
    MEBIBYTE_PER_SECOND = "MiB/s"
    BIT_PER_SECOND = "bit/s"
    MEGABIT_PER_SECOND = "Mbit/s"
    KILOPACKET_PER_SECOND = "kpps"
    PERCENT = "%"
    FILES = "files"
    SCORE = "score"
    DMIPS_PER_MEGAHERTZ = "DMIPS/MHz"
    DHRYSTONES_PER_SECOND = "dhrystones/s"
    MWIPS = "MWIPS"
    KILOFLOPS = "kflops"
    ITERATIONS_PER_SECOND = "iterations/s"
    WORKLOADS_PER_SECOND = "workloads/s"
    PER_SECOND = "1/s"
    VOLT = "V"
    MILLIWATT = "mW"
    WATT = "W"
    JOULE = "J"
    CELSIUS = "°C"


MEGABYTE, KIBIBYTE, MEBIBYTE = 1_000_000, 1 << 10, 1 << 20
"""Bytes in a megabyte (SI), a kibibyte and a mebibyte (IEC)."""

_LARGER: dict[str, str] = {
    Unit.KILOBYTE_PER_SECOND: "MB/s",
    Unit.KIBIBYTE_PER_SECOND: "MiB/s",
    Unit.KILOFLOPS: "Mflop/s",
    Unit.DHRYSTONES_PER_SECOND: "thousand dhrystones/s",
}
"""Units a thousand (of KiB/s 1024) times as large, for people."""


def readable(unit: str, most: float) -> tuple[str, float]:
    """The unit to show figures in of which `most` is the largest, and what divides them."""
    larger = _LARGER.get(unit) if most >= 10_000 else None
    divisor = 1024.0 if unit == Unit.KIBIBYTE_PER_SECOND else 1000.0
    return (larger, divisor) if larger else (unit, 1.0)


_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size_bytes(text: str) -> int:
    """Bytes of a size as fio and dd write it: `4k`, `1m`, `1g`, or a plain number of bytes."""
    factor = _SIZES.get(text[-1:].lower())
    return int(text[:-1]) * factor if factor else int(text)


def counted(number: int, noun: str) -> str:
    """A number of things whose plural ends in s: `1 run`, `2 runs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_DURATIONS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(text: str) -> float:
    """The seconds in 90s, 30m, 2h or 1h30m, 0 for ""; raises UsageError for what is no duration."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", text)
    if "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{text!r} is not a duration: write 90s, 30m, 2h or 1h30m")
    return sum(float(number) * _DURATIONS[unit] for number, unit in parts)
