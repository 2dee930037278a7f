"""The conditions under which two figures may be compared, and their differences."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evmperf.model.facts import Facts
from evmperf.model.results import VARIANT, Result
from evmperf.model.run import FOREIGN, Run

_CARD_TYPE = {"emmc": "MMC", "mmcsd": "SD"}
"""The kernel's card type of a storage driver's medium."""

INDIVIDUAL = ("place", "serial number", "card")
"""What tells one board of a kind from its twins."""

_HELPERS = re.compile(r"mkfs\..*|ubi\w+|netserver|netperf-b|ethtool")

Facets = Mapping[str, str]
"""The conditions of a figure by name; an absent condition is unknown and fits any."""


def of_run(run: Run) -> dict[str, str]:
    """The conditions of all figures of a run."""
    facts = run.facts
    facets = {
        "board": run.board,
        "kind of board": FOREIGN if run.kind == FOREIGN else "virtual" if facts.virtual else "real",
        "operating system": run.os,
        "board revision": facts.board_revision,
        "place": "" if facts.virtual else run.place,
        "serial number": facts.serial_number,
    }
    return {name: text for name, text in facets.items() if text}


@dataclass(frozen=True)
class ComparableCase:
    """The conditions in the record of a case; version 0 is that of a published figure."""

    driver: str
    profile: str
    version: int
    tools: Iterable[str]
    conditions: Mapping[str, object]


def of_case(run: Run, case: ComparableCase | Result) -> dict[str, str]:
    """The further conditions of one case."""
    start = "Starting kernel" if case.driver == "boot" else ""
    # The programs that measured, on whichever machine; not what prepared for them or answered.
    programs = {name for tool in case.tools if not _HELPERS.fullmatch(name := tool.removeprefix("tester "))}
    facets = {
        "profile": case.profile,
        "benchmark version": str(case.version or ""),
        "tool": "+".join(sorted(programs)),
        "variant": str(case.conditions.get(VARIANT, "")),
        "medium": str(case.conditions.get("medium", "")),
        "counted from": str(case.conditions.get("counted_from", start)),
        "media model": _cards(run.facts, case.driver, "name"),
        "card": _cards(run.facts, case.driver, "cid"),
    }
    return {name: text for name, text in facets.items() if text}


def of_result(run: Run, result: Result) -> dict[str, str]:
    """The conditions of a result and its run."""
    return of_run(run) | of_case(run, result)


def difference(ours: Facets, theirs: Facets) -> str:
    """What differs, as `name (ours, not theirs)`; "" when nothing known does, or twins only."""
    return _named(ours, theirs, [name for name in ours if name not in INDIVIDUAL])


def twin(ours: Facets, theirs: Facets) -> str:
    """What shows that the other board is a twin; "" when nothing known does."""
    return _named(ours, theirs, [name for name in INDIVIDUAL if name in ours])


def _named(ours: Facets, theirs: Facets, names: Iterable[str]) -> str:
    return "; ".join(
        f"{name} differs ({ours[name]}, not {theirs[name]})"
        for name in names
        if name in theirs and ours[name] != theirs[name]
    )


def _cards(facts: Facts, driver: str, what: str) -> str:
    """Names or numbers of the card or drives that a storage driver works on, as the kernel gives them."""
    card_type = _CARD_TYPE.get(driver)
    values = [c.get(what, "") for c in facts.cards if c.get("type") == card_type]
    if (driver, what) == ("pcie", "name"):
        values = [line.partition(" ")[2] for line in facts.nvme]
    return ", ".join(sorted(filter(None, values)))
