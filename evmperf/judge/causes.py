"""One cause, one alarm: what moved in the same night, and what else changed then."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from evmperf.benchmarks import wording
from evmperf.model.facts import HOST_LOADED, Facts
from evmperf.model.run import Run
from evmperf.model.stats import percent, share_text
from evmperf.model.verdict import Outcome, Verdict, VerdictCause

_NEAR = 3
"""Nights by which the date of a change in a noisy series may be off, either way."""
_MANY = 3
"""Benchmarks that have nothing in common but board and lab."""
_WARMER = 10.0
"""Degrees Celsius that are no accident."""
_SHOWN = 40
"""Characters of a fact that are shown."""
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
    left = [(v, places[v.since]) for v in moved if not v.slow and v.since in places]
    named = []
    if slow:
        first = min(places.get(v.since, 0) for v in slow)
        suspects = ["too slow to be seen in one night; compare with the oldest runs"]
        named.append(_cause(slow, runs, first, suspects, slow=True))
    while left:
        # The date that most have; what begins some nights before or after it is dated wrong, and joins.
        ((most, _),) = Counter(place for _, place in left).most_common(1)
        mine = [(v, place) for v, place in left if abs(place - most) <= _NEAR]
        left = [(v, place) for v, place in left if abs(place - most) > _NEAR]
        members = [v for v, _ in mine]
        suspects = _suspects(members, Counter(place for _, place in mine), most, runs)
        named.append(_cause(members, runs, most, suspects))
    return sorted(named, key=lambda cause: (-cause.worse, -len(cause.members)))


def _cause(
    members: Sequence[Verdict], runs: Sequence[Run], first: int, suspects: Sequence[str], slow: bool = False
) -> VerdictCause:
    """The cause of some verdicts that began with the run `first` (index)."""
    worse = [v for v in members if v.outcome is Outcome.WORSE]
    alarms = [v.alarm for v in members if v.alarm]
    dated = [alarm.good for alarm in alarms if alarm.since == runs[first].id and alarm.good]
    good = Counter(dated).most_common(1)[0][0] if dated else runs[max(first - 1, 0)].id
    return VerdictCause(
        runs[first].id,
        slow,
        [v.key for v in members],
        len(worse),
        suspects,
        size=_size(worse or members),
        good=good,
        nights=len(runs) - first,
        new=all(alarm.opened == runs[-1].id for alarm in alarms),
        command=_command(worse, runs, good, slow) if worse else "",
    )


def _size(members: Sequence[Verdict]) -> str:
    """The size of some changes: the median of shares, or the first in its unit."""
    alarms = [v.alarm for v in members if v.alarm]
    shares = [abs(alarm.size) for alarm in alarms if not alarm.unit]
    if not shares:
        return alarms[0].amount(abs(alarms[0].size)).lstrip("+") if alarms else ""
    return share_text(statistics.median(shares))


def _command(worse: Sequence[Verdict], runs: Sequence[Run], good: str, slow: bool) -> str:
    """What tells most of some losses: an A/B where both images can be put back on the board, the differences
    from the good run of a slow loss, else what was read beside the worst figure.
    """
    run, first = runs[-1], worse[0].key
    if slow:
        return f"evmperf compare --facts {runs[0].id} {run.id}"
    images = [_what(one.facts.provisioned) for one in runs if one.id in (good, run.id)]
    if all(images) and len(images) > 1 and images[0] != images[1] and not all(v.control for v in worse):
        return f"evmperf check {run.id} --confirm 1h"
    return f'evmperf why {run.id} "{first.benchmark} {first.case}"'


def _suspects(members: Sequence[Verdict], dates: Counter[int], most: int, runs: Sequence[Run]) -> list[str]:
    """What changed in a night in which members began, the night that most began in first."""
    moved = [
        f"{wording.metric(v.key.metric)} {percent(v.change)}"
        for v in members
        if v.control and v.change is not None
    ]
    suspects = [f"the board changed: {', '.join(moved)}, too"] if moved else []
    for at in sorted(range(max(min(dates), 1), max(dates) + 1), key=lambda at: (abs(at - most), -dates[at])):
        before, run = runs[at - 1], runs[at]
        now, was = (one.facts.host_load or 0.0 for one in (run, before))
        if at == most and now >= HOST_LOADED and now >= 2 * was:
            # It had more to do than it has processors, and than before.
            suspects.append(f"the lab's host was loaded ({now:.1f} processes a processor, {was:.1f} before)")
        differing = list(dict.fromkeys(differences(before, run)))
        suspects += differing if at == most else [f"{one}, in {run.id}" for one in differing]
    if suspects:
        return suspects
    names = {v.key.benchmark for v in members}
    if len(names) >= _MANY:
        return ["nothing known differs, and unrelated metrics moved: look at board and lab first"]
    return [f"nothing known differs: look at {', '.join(sorted(names))} first"]


def differences(before: Run, run: Run) -> Iterator[str]:
    """What is known to differ between two runs, besides their figures, in words."""
    ours: dict[str, Any] = {**run.facts.to_dict(), "release": run.release}
    theirs: dict[str, Any] = {**before.facts.to_dict(), "release": before.release}
    for fact in _FACTS.split():
        if fact in ours and fact in theirs and _what(ours[fact]) != _what(theirs[fact]):
            name = _NAMES.get(fact, fact.replace("_", " "))
            old, new = theirs[fact], ours[fact]
            plain = isinstance(old, str) and isinstance(new, str) and len(old + new) <= 2 * _SHOWN
            yield f"{name} differs ({old} to {new})" if plain else f"{name} differs"
    warm, was = _temperature(run.facts), _temperature(before.facts)
    if warm is not None and was is not None and abs(warm - was) >= _WARMER:
        yield f"temperature differs ({warm:.0f} °C, not {was:.0f} °C)"


def _what(fact: Any) -> Any:
    """What identifies a fact: of an image its content, not where it came from."""
    return fact.get("content_sha256", fact) if isinstance(fact, dict) else fact


def _temperature(facts: Facts) -> float | None:
    """The highest, in degrees Celsius."""
    sensors = facts.temperatures_millicelsius
    return max(sensors.values()) / 1000 if sensors else None
