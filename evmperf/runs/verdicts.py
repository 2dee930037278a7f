"""Verdicts as records of the run that was judged, from which report and database have them.

A later record about the same figure replaces the earlier one.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from evmperf.model.figures import Key
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Result
from evmperf.model.verdict import Judgement, Verdict, explained
from evmperf.runs import spool


def keep(folder: Path, judgement: Judgement) -> int:
    """Append the run's new verdicts; returns their number. Raises LabError."""
    drivers: dict[str, str] = {}
    known: dict[Key, VerdictRecord] = {}
    for record in spool.read_records(folder):
        if isinstance(record, VerdictRecord):
            known[record.key] = record
        elif isinstance(record, Result):
            drivers[record.benchmark] = record.driver
    new = []
    goals = {goal.key: goal for goal in judgement.goals}
    for verdict in judgement.verdicts:
        record = _record(verdict, drivers[verdict.key.benchmark], judgement.against)
        if goal := goals.get(verdict.key):
            record = replace(record, goal=goal.goal, reached=str(goal.word), owner=goal.owner)
        if record != known.get(verdict.key):
            new.append(record)
    if new:
        spool.append_records(folder, new)
    return len(new)


def _record(verdict: Verdict, driver: str, against: str) -> VerdictRecord:
    return VerdictRecord(
        **verdict.key._asdict(),
        driver=driver,
        verdict=str(verdict.outcome),
        reason=explained(verdict),
        baseline=against,
        change=verdict.change,
        level_since=verdict.since if verdict.confirmed else "",
        was=verdict.baseline,
        tolerance=verdict.tolerance,
        why=verdict.why,
    )
