"""A night's alarm checked again: an A/B of what got worse against the last image that was good.

A verdict against earlier nights mixes the software with the board's day. Measured in turn on one
board, the image of that night and the one before it tell which of the two it was.
"""

import glob
import secrets
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import besides
from evmperf.measure.runs import spool
from evmperf.model.alarm import AlarmState
from evmperf.model.change import Change, Comparison
from evmperf.model.errors import UsageError
from evmperf.model.run import Run
from evmperf.model.stats import percent
from evmperf.model.verdict import WITHIN, WITHIN_POINTS, Judgement, Outcome, Reason, Verdict, by_severity

BLOCKS = 40
"""Most blocks; the budget ends it earlier."""
_LEAST = 0.01
"""Least margin within which an A/B takes an alarm back; it is half of the smallest alarm."""
_BOOTS = 1
"""Cold boots of a round: only blocks count, and a budget has more of short ones."""


def _image(run: Run) -> dict[str, str]:
    if not run.facts.provisioned:
        raise UsageError(f"{run.id} was measured without --image: there is no image to put back")
    return run.facts.provisioned


def asked(folder: Path, judgement: Judgement, good: Run, board: str, budget_s: float) -> Experiment:
    """The A/B that checks what got worse, and no other cases: with the image of the last good run and with
    that of the judged one. Raises UsageError when one of them is not known, or both are the same.
    """
    run = spool.read_run(folder)
    images = {"a": _image(good), "b": _image(run)}
    if images["a"]["content_sha256"] == images["b"]["content_sha256"]:
        name = images["b"]["name"]
        raise UsageError(f"{good.id} ran the same image ({name}), so the image did not change")
    worse = [v.key for v in judgement.perhaps_worse]
    changes = [abs(v.change or 0.0) for v in judgement.verdicts if v.key in worse]
    benchmarks = sorted({key.benchmark for key in worse})
    return Experiment(
        id=f"ab-{folder.name}",
        boards=[board],
        sides={side: [f"image:{image['source']}"] for side, image in images.items()},
        seed=secrets.token_hex(8),
        select=" or ".join(benchmarks),
        profile=run.profile,
        blocks=BLOCKS,
        boots=_BOOTS,
        budget_s=budget_s,
        within=max(min(changes) / 2, _LEAST),
        metrics=[glob.escape("/".join(key)) for key in worse],
        leave_out=besides(benchmarks, run.profile, {f"{key.benchmark}/{key.case}" for key in worse}),
    )


def settled(judgement: Judgement, comparison: Comparison, since: str, board: str) -> Judgement:
    """The judgement with what an A/B says of its alarms: a figure that is the same, or better, on
    both images is not worse. What is still unknown stays an alarm, and says so.
    """
    changes = {change.key: change for change in comparison.changes}
    by: dict[str, list[Verdict]] = {_CONFIRMED: [], _DISMISSED: [], _OPEN: []}
    verdicts = []
    for verdict in judgement.verdicts:
        answer = verdict
        if verdict.outcome is Outcome.WORSE or verdict in judgement.perhaps_worse:
            word, answer = _settled(verdict, changes.get(verdict.key), since)
            by[word].append(answer)
        verdicts.append(answer)
    counts = ", ".join(f"{len(some)} {word}" for word, some in by.items() if some)
    again = (
        f"checked again in an A/B with the image of {since} ({comparison.id}, {comparison.blocks} "
        f"blocks, {comparison.spent_s / 60:.0f} min): {counts or 'nothing measured'}"
    )
    if by[_CONFIRMED]:
        again += (
            f"; next: git bisect run evmperf ab {board} --git-bisect --a image:GOOD "
            f"--b image:BUILT --metric {'/'.join(by_severity(by[_CONFIRMED])[0].key)} (docs/ab.md)"
        )
    dismissed = {verdict.key for verdict in by[_DISMISSED]}
    causes = [
        replace(cause, members=left, worse=cause.worse - len(cause.members) + len(left))
        for cause in judgement.causes
        if (left := [key for key in cause.members if key not in dismissed])
    ]
    return replace(judgement, verdicts=by_severity(verdicts), causes=causes, again=again)


_CONFIRMED, _DISMISSED, _OPEN = "confirmed", "not confirmed", "not settled"


def _settled(verdict: Verdict, change: Change | None, since: str) -> tuple[str, Verdict]:
    """In a word, and the verdict."""
    image = f"an A/B with the image of {since}"
    if change is None:
        return _OPEN, replace(verdict, why=f"{_OPEN}: {image} has no such figure")
    bounds = f"{_text(change, change.low)} to {_text(change, change.high)}"
    if change.decision is Outcome.WORSE:
        confirmed = replace(_told(verdict, AlarmState.CONFIRMED), outcome=Outcome.WORSE, reason=Reason.ALARM)
        return _CONFIRMED, replace(confirmed, why=f"{_CONFIRMED} by {image}: {bounds}")
    if change.decision is Outcome.UNKNOWN:
        return _OPEN, replace(verdict, why=f"{_OPEN} by {image}: {bounds}")
    # What is shown to be less than the alarm is the same only within the margin of all that is.
    same = max(-change.low, change.high) <= (WITHIN_POINTS if change.in_points else WITHIN)
    outcome = Outcome.SAME if same else Outcome.UNKNOWN
    taken_back = _told(verdict, AlarmState.WITHDRAWN)
    return _DISMISSED, replace(
        taken_back, outcome=outcome, reason=Reason.ALARM, why=f"{_DISMISSED}: {image} shows {bounds}"
    )


def _told(verdict: Verdict, state: AlarmState) -> Verdict:
    return replace(verdict, alarm=structs.replace(verdict.alarm, state=state) if verdict.alarm else None)


def _text(change: Change, value: float) -> str:
    return f"{value:+.1f} points" if change.in_points else percent(value)
