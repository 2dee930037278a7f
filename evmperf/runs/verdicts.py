"""Verdicts as records of the run that was judged, from which report and database have them.

A later record about the same figure replaces the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evmperf.model.figures import Key
from evmperf.model.run import SCHEMA
from evmperf.model.verdict import Judgement, Verdict, explained
from evmperf.runs import spool

VERDICT = "verdict"
"""What such a record calls itself."""


def key_of(record: Mapping[str, Any]) -> Key:
    """The figure that a verdict's record is about."""
    return Key(record["benchmark"], record["case"], record["metric"])


def keep(folder: Path, judgement: Judgement) -> int:
    """Append the verdicts that the run does not have yet; returns how many those are.

    Raises LabError when the disk does not take them.
    """
    drivers: dict[str, str] = {}
    known: dict[Key, Mapping[str, Any]] = {}
    for record in spool.read_records(folder):
        if record["record"] == VERDICT:
            known[key_of(record)] = record
        elif record["record"] == "result":
            drivers[record["benchmark"]] = record["driver"]
    new = []
    for verdict in judgement.verdicts:
        record = _record(verdict, drivers[verdict.key.benchmark], judgement.against)
        if {"schema": SCHEMA, **record} != known.get(verdict.key):
            new.append(record)
    if new:
        spool.append_records(folder, new)
    return len(new)


def _record(verdict: Verdict, driver: str, against: str) -> dict[str, Any]:
    record = {
        "record": VERDICT,
        **verdict.key._asdict(),
        "driver": driver,
        "verdict": str(verdict.outcome),
        "reason": explained(verdict),
        "baseline": against,
    }
    return record if verdict.change is None else {**record, "change": verdict.change}
