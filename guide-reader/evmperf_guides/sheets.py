"""The second published source: data sheets of TI's MCU+ SDK, measured on the same boards without Linux, and
what they say that a mode costs.
"""

import functools
import re
import statistics
from collections.abc import Mapping
from pathlib import Path

from evmperf.judge.published import identity, record
from evmperf.judge.published.record import PublishedCase

FILE = Path(__file__).with_name("datasheets.zst")
"""The record of the sheets, in the form of the guides' record."""

_SAME = {"SDR50": "eMMC high-speed", "DDR50": "DDR52"}
"""The sheets' names of eMMC modes (the clock in MHz) that `evmperf.boards.modes` calls otherwise."""
_LINUX = "a53"
"""The core whose figures count where a sheet has several: that of Linux."""
_TABLES = {"emmc": r"emmc_(\w+_)?performance", "ospi": r"ospi_(nor_)?(flash_)?performance"}
"""Tables of each driver's medium; OSPI's NAND is another."""


def price(board: str, driver: str, side: str, mode: str, better: str) -> str:
    """What `read` or `write` moves in a mode of `emmc` (`HS200`, as `evmperf.boards.modes` names them) or of
    `ospi` (`PHY disabled, DMA enabled`), and in a better one; "" where the board's sheet has not both.
    """
    rates = _rates(identity.board(board), driver, side)
    if not rates.keys() >= {mode, better}:
        return ""
    now, then = (f"{rates[name][0]:.4g} MiB/s at {name}" for name in (mode, better))
    return f"bare metal on the same board, TI: {now}, {then} ({rates[better][1]})"


@functools.cache
def _rates(board: str, driver: str, side: str) -> Mapping[str, tuple[float, str]]:
    """By mode what a board moved, in MiB/s: the median over sizes, and where that stands."""
    by_core: dict[str, dict[str, list[tuple[float, str]]]] = {}
    for entry in record.of_board(board, file=FILE):
        for case in entry.cases:
            for value in case.values if re.fullmatch(_TABLES.get(driver, "-"), case.benchmark) else ():
                core, mode = _mode(case, driver)
                if value.metric == f"{side}_speed" and mode:
                    place = f"{entry.guide}, line {value.line}"
                    by_core.setdefault(core, {}).setdefault(mode, []).append((value.mean, place))
    chosen = by_core.get(_LINUX) or next(iter(by_core.values()), {})
    return {mode: statistics.median_low(rates) for mode, rates in chosen.items()}


def _mode(case: PublishedCase, driver: str) -> tuple[str, str]:
    """The core and the mode of a row whose name is [CORE|][MODE|]SIZE[|more], in this or another order."""
    keys = [key for key in case.name.split("|") if not re.fullmatch(r"[\d.]+ [KM]iB", key)]
    keys = [key for key in keys if key not in {f"{name} {fact}" for name, fact in case.words.items()}]
    if driver == "emmc":
        mode = keys[-1] if keys else ""
        return "|".join(keys[:-1]), _SAME.get(mode, mode)
    facts = [f"{name} {case.words[name]}" for name in ("PHY", "DMA") if name in case.words]
    return keys[0] if keys else "", ", ".join(facts)
