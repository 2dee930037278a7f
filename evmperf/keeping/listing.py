"""Who holds what: the locks of this host and the places of a coordinator, as one list."""

from collections.abc import Mapping
from typing import Any

from evmperf.keeping import locks
from evmperf.keeping.claim import ask_once
from evmperf.keeping.wanted import HoldRecord


def holders(coordinator: str) -> list[HoldRecord]:
    """The records of all held boards on this host and, if given, at a coordinator. Raises LabError."""
    records = locks.held()
    if coordinator:
        here = {r.place for r in records if r.coordinator == coordinator}
        there = [place for place in places(coordinator) if place["name"] not in here]
        records += filter(None, (holder(place, coordinator) for place in there))
    return sorted(records, key=lambda record: record.place)


def holder(place: Mapping[str, Any], coordinator: str) -> HoldRecord | None:
    """The record of a place of `places` that somebody holds, by hand or by any keeper."""
    if not place["acquired"]:
        return None
    return HoldRecord.of_place(place["name"], place["acquired"], place["changed"], place["tags"], coordinator)


def places(coordinator: str) -> list[dict[str, Any]]:
    """All places of a coordinator: name, tags, acquired, reserved, ready; raises LabError."""
    return list(ask_once("places", coordinator=coordinator)["places"])
