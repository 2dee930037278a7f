"""What must be alike for two figures to be compared, and what differs if it is not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evmperf.model.results import VARIANT, Result
from evmperf.model.run import Run

_CARD_TYPE = {"emmc": "MMC", "mmcsd": "SD"}
"""The kernel's card type of a storage driver's medium."""

DECIDING = ("medium", VARIANT, "counted_from")
"""The conditions of a case that decide what it is compared with."""

Facets = Mapping[str, str]
"""What a figure was measured under, by name; what is not known is absent, and fits anything."""


def of_run(run: Run) -> dict[str, str]:
    """What holds for all figures of a run."""
    facts = run.facts
    facets = {
        "board": run.board,
        "kind of board": "virtual" if facts.get("virtual") else "real",
        "operating system": run.os,
        "board revision": str(facts.get("board_revision", "")),
        "governor": str(facts.get("governor", "")),
    }
    return {name: text for name, text in facets.items() if text}


@dataclass(frozen=True)
class Case:
    """What a record says of one case. Version 0 is a published figure's."""

    driver: str
    profile: str
    version: int
    tools: Iterable[str]
    conditions: Mapping[str, Any]


def of_case(run: Run, case: Case) -> dict[str, str]:
    """What holds for the figures of one case beyond that."""
    facets = {
        "profile": case.profile,
        "benchmark version": str(case.version or ""),
        "tool": "+".join(sorted(case.tools)),
        "variant": str(case.conditions.get(VARIANT, "")),
        "medium": str(case.conditions.get("medium", "")),
        "counted from": _counted_from(case),
        "media model": _media_model(run.facts, case.driver),
    }
    return {name: text for name, text in facets.items() if text}


def of_result(run: Run, result: Result) -> dict[str, str]:
    """What a result and its run were measured under."""
    case = Case(result.driver, result.profile, result.version, result.tools, result.conditions)
    return of_run(run) | of_case(run, case)


def difference(ours: Facets, theirs: Facets) -> str:
    """What differs, as `name (ours, not theirs)`; "" when nothing known does."""
    return "; ".join(
        f"{name} differs ({ours[name]}, not {theirs[name]})"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    )


def _counted_from(case: Case) -> str:
    """What a boot time begins with."""
    return str(case.conditions.get("counted_from", "Starting kernel" if case.driver == "boot" else ""))


def _media_model(facts: Mapping[str, Any], driver: str) -> str:
    """Name of the card or drive that a storage driver works on, as the kernel gives it."""
    if driver == "pcie":
        models: list[str] = [str(line).partition(" ")[2] for line in facts.get("nvme", ())]
    else:
        wanted = _CARD_TYPE.get(driver)
        models = [c.get("name", "") for c in facts.get("cards", ()) if c.get("type") == wanted]
    return ", ".join(sorted(filter(None, models)))
