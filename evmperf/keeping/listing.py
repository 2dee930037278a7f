"""Who holds what: the locks of this host and the places of a coordinator, as one list."""

from __future__ import annotations

from typing import Any

from evmperf.keeping import locks
from evmperf.keeping.claim import KeeperLink
from evmperf.keeping.hold import clock, of_place

_HEAD = ("place", "holder", "run", "since", "until", "measures")


def holders(coordinator: str) -> list[dict[str, Any]]:
    """The records of all boards held on this host, and at a coordinator if one is given.

    Raises LabError when the coordinator does not answer.
    """
    records = locks.held()
    if coordinator:
        here = {r["place"] for r in records if r["coordinator"] == coordinator}
        records += [
            of_place(place["name"], place["acquired"], place["changed"], place["tags"], coordinator)
            for place in places(coordinator)
            if place["acquired"] and place["name"] not in here
        ]
    return sorted(records, key=lambda record: str(record["place"]))


def places(coordinator: str) -> list[dict[str, Any]]:
    """All places of a coordinator: name, tags, acquired, reserved, ready; raises LabError."""
    link = KeeperLink()
    try:
        found: list[dict[str, Any]] = link.ask("places", 60, coordinator=coordinator)["places"]
    finally:
        link.close()
    return found


def table(records: list[dict[str, Any]]) -> list[str]:
    """The records as text, one line each under a heading; no line for no record."""
    if not records:
        return []
    rows = [_HEAD]
    for record in records:
        rows.append(
            (
                str(record["place"]),
                f"{record['user']} on {record['host']}",
                str(record["run"]) or "by hand",
                clock(record["since"]),
                clock(record["until"]) if record["until"] else "",
                str(record["doing"]),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
