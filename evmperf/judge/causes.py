"""One cause, one alarm: what moved in the same night, and what else is different since."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evmperf.benchmarks import control, wording
from evmperf.model.facts import HOST_LOADED, Facts
from evmperf.model.run import Run
from evmperf.model.stats import percent
from evmperf.model.verdict import Outcome, Verdict, VerdictCause

_NEAR = 2
"""Nights by which the date of a change in a noisy series may be off, either way."""
_MANY = 3
"""Benchmarks that have nothing in common but board and lab."""
_WARMER = 10.0
"""Degrees Celsius that are no accident."""
_FACTS = (
    "release provisioned image kernel command_line uboot dtb governor place board_revision cards nvme "
    "packages lab evmperf_revision"
)
"""Facts of a run that may be why it is different, the likeliest first."""
_NAMES = {"provisioned": "image", "uboot": "U-Boot", "dtb": "device tree", "evmperf_revision": "evmperf"}
_NAMES |= {"cards": "medium", "nvme": "medium"}


def causes(verdicts: Sequence[Verdict], runs: Sequence[Run]) -> list[VerdictCause]:
    """What is better or worse, by when it began; `runs` are in order, the judged one last."""
    places = {run.id: number for number, run in enumerate(runs)}
    moved = [v for v in verdicts if v.outcome in (Outcome.WORSE, Outcome.BETTER)]
    slow = [v for v in moved if v.slow]
    left = {v.key: (v, places[v.since]) for v in moved if not v.slow and v.since in places}
    groups = [(slow, min(places.get(v.since, 0) for v in slow))] if slow else []
    while left:
        counts = Counter(place for _, place in left.values())
        most = max(counts, key=lambda at: (sum(counts[at + n] for n in range(-_NEAR, _NEAR + 1)), counts[at]))
        mine = [v for v, place in left.values() if abs(place - most) <= _NEAR]
        groups.append((mine, most))
        left = {key: entry for key, entry in left.items() if abs(entry[1] - most) > _NEAR}
    found = [
        VerdictCause(
            runs[at].id,
            mine is slow,
            [v.key for v in mine],
            sum(v.outcome is Outcome.WORSE for v in mine),
            _suspects(mine, runs[max(at - 1, 0)], runs[at])
            if mine is not slow
            else ["too slow to be seen in one night; compare with the oldest runs"],
        )
        for mine, at in groups
    ]
    return sorted(found, key=lambda cause: (-cause.worse, -len(cause.members)))


def _suspects(members: Sequence[Verdict], before: Run, run: Run) -> list[str]:
    moved = [
        f"{wording.metric(v.key.metric)} {percent(v.change)}"
        for v in members
        if v.key.benchmark == control.NAME and v.change is not None
    ]
    board = [f"the board changed: {', '.join(moved)}, too"] if moved else []
    now, was = (one.facts.host_load or 0.0 for one in (run, before))
    loaded = f"the lab's host was loaded ({now:.1f} processes a processor, {was:.1f} before)"
    # It had more to do than it has processors, and than before.
    load = [loaded] if now >= HOST_LOADED and now >= 2 * was else []
    if found := [*board, *load, *dict.fromkeys(_differences(before, run))]:
        return found
    names = {v.key.benchmark for v in members}
    if len(names) >= _MANY:
        return ["nothing known differs, and unrelated metrics moved: look at board and lab first"]
    return [f"nothing known differs: look at {', '.join(sorted(names))} first"]


def _differences(before: Run, run: Run) -> list[str]:
    ours: dict[str, Any] = {**run.facts.to_dict(), "release": run.release}
    theirs: dict[str, Any] = {**before.facts.to_dict(), "release": before.release}
    found = [
        f"{_NAMES.get(fact, fact.replace('_', ' '))} differs"
        for fact in _FACTS.split()
        if fact in ours and fact in theirs and _what(ours[fact]) != _what(theirs[fact])
    ]
    warm, was = _temperature(run.facts), _temperature(before.facts)
    if warm is not None and was is not None and abs(warm - was) >= _WARMER:
        found.append(f"temperature differs ({warm:.0f} °C, not {was:.0f} °C)")
    return found


def _what(fact: Any) -> Any:
    """What identifies a fact: of an image its content, not where it came from."""
    return fact.get("content_sha256", fact) if isinstance(fact, dict) else fact


def _temperature(facts: Facts) -> float | None:
    """The highest, in degrees Celsius."""
    known = facts.temperatures_millicelsius
    return max(known.values()) / 1000 if known else None
