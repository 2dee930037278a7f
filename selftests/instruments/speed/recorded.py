"""How often verdicts are wrong and how soon they are right on recorded series, beside Otava and asv.

Nights are judged one after the other, as `evmperf check` does, and the life of each alarm goes on. A lab is
some series of one machine without its changes of level (as asv finds them), its runs in a random
order: then nothing changes but what is put in, and what a tool reports besides is false. Series with an even
number serve for tuning, the others for judging.
"""

from __future__ import annotations

import csv
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.verdict import Judgement, Outcome, Reason, Verdict
from evmperf.publish.report import verdicts as report
from selftests.instruments.speed import noises, peers
from selftests.instruments.speed.figures import Row, met
from selftests.instruments.speed.noises import Matrix
from selftests.instruments.speed.replay import Replay
from selftests.support import seeds

HISTORY = 40
_AFTER = 40
_METRICS = 331
_SHARE = 20
"""Every so many metrics have a change."""
_NEAR = 2
"""Nights by which a change may be dated wrong."""
_QUIET = 0.03
"""Relative spread of a quiet series."""
_DRIFT = 0.0005
"""Loss a night, as a share."""
_LASTING = 10
"""Nights of an alarm; a shorter one may be an odd night."""
_LEVEL_NIGHTS = 5
ENDS = (1, 2, 3, 10)
_ROUNDS = (4, 5, 6, 7)
"""Random orders of the nights that a loss is put into."""
_STEPS = range(4, 14)
"""The same of a step: what its first night is like decides, and each order has one."""
_LOOP_FIRST = 66
_UNCHANGED = range(1, 5)
"""Random orders of unchanged nights."""


@dataclass(frozen=True)
class Lab:
    """Series of a machine: a row a metric, seconds."""

    name: str
    values: Matrix

    def shuffled(self, random: np.random.Generator, nights: int) -> Matrix:
        """Some nights in a random order, the same of each metric."""
        first = int(random.integers(0, self.values.shape[1] - nights + 1))
        return self.values[:, first + random.permutation(nights)].copy()


def labs(half: int, most: int = _METRICS, levelled: bool = True) -> Iterator[Lab]:
    """Those of the even (0) or odd (1) series of each recorded machine."""
    level = _levelled if levelled else np.asarray
    random = np.random.default_rng(20261124)
    for file in seeds.real("series", "*.jsonl.gz"):
        for setup, values in noises.machine(file):
            mine = values[half::2]
            name = f"{file.name.partition('.')[0]} {setup[-5:-2]}"
            yield Lab(name, level(mine[_some(random, len(mine), most)]))
    for file in seeds.real("series-2", "*.npz"):
        values = np.load(file)["X"].astype(float)
        # A tool that must have each value gets the one before.
        gaps = np.isnan(values)
        values = values[gaps.mean(axis=1) < 0.05]
        for row in values:
            known = np.flatnonzero(np.isfinite(row))
            row[:] = row[known[np.maximum(np.searchsorted(known, np.arange(len(row)), "right") - 1, 0)]]
        mine = values[half::2]
        yield Lab(file.stem, level(mine[_some(random, len(mine), most)]))


def _levelled(values: Matrix) -> Matrix:
    """Without changes of level: each level of at least _LEVEL_NIGHTS nights is that of all."""
    for row, ((_, points),) in zip(values, peers.change_points(values, [values.shape[1]], 1), strict=True):
        whole = np.median(row)
        ends = [0, *points, len(row)]
        for first, last in itertools.pairwise(ends):
            if last - first >= _LEVEL_NIGHTS:
                row[first:last] *= whole / np.median(row[first:last])
    return values


def _some(random: np.random.Generator, count: int, most: int) -> np.ndarray:
    return np.sort(random.permutation(count)[:most])


def spread(values: Matrix) -> Matrix:
    """Relative spread from run to run, a row each."""
    return np.asarray(np.median(np.abs(np.diff(np.log(values), axis=1)), axis=1) * 1.48 / np.sqrt(2))


@dataclass
class Tally:
    """Hits of a row by judge: evmperf first, then the peers."""

    hits: list[list[bool]]

    @classmethod
    def empty(cls) -> Tally:
        return cls([[] for _ in range(1 + len(peers.NAMES))])

    def row(self, what: str, goal: str = "", least: float | None = None, most: float | None = None) -> Row:
        ours, *theirs = (float(np.mean(h)) if h else float("nan") for h in self.hits)
        kept = (least is None or ours >= least) and (most is None or ours <= most)
        named = zip(peers.NAMES, theirs, strict=True)
        beside = ", ".join(f"{name} {share:.0%}" for name, share in named if not np.isnan(share))
        said = f"{sum(self.hits[0])} of {len(self.hits[0])}"
        return Row(what, said, beside, f"{ours:.1%}", goal, ("yes" if kept else "NO") if goal else "")


def judging(*parts: str) -> list[Row]:
    """The rows of some parts, or of all, on the half of the series that no constant was chosen by."""
    return _rows(labs(1), parts)


def _rows(given: Iterable[Lab], parts: Iterable[str] = ()) -> list[Row]:
    known = list(given)
    return [row for part in parts or PARTS for row in PARTS[part](known)]


def _loop(_: Sequence[Lab]) -> list[Row]:
    """Motor controllers in a loop: mean periods, which cannot change, in every run."""
    (file,) = seeds.real("series-3", "*.csv")
    with file.open() as lines:
        runs = list(csv.DictReader(lines))
    periods = [name for name in runs[0] if name.startswith("mean") and "period" in name]
    values = np.array([[float(run[name]) for run in runs] for name in periods])
    nights = list(Replay(values, images=True).nights(_LOOP_FIRST))
    rows = []
    for place, (name, (points,)) in enumerate(
        zip(periods, peers.change_points(values, [len(runs)]), strict=True)
    ):
        moved = [night.verdicts[place].outcome in (Outcome.WORSE, Outcome.BETTER) for night in nights]
        beside = ", ".join(f"{peer} {len(one)}" for peer, one in zip(peers.NAMES, points, strict=True))
        told = f"{sum(moved)} of {len(moved)}"
        rows.append(Row(f"{name}: alarms", told, beside, goal="0", met=met(sum(moved), 0)))
    return rows


def _nights(_: Sequence[Lab]) -> list[Row]:
    """Nights in their order, with the changes of level that are in them."""
    rows = []
    for lab in labs(1, levelled=False):
        values = lab.values[:, -HISTORY - _AFTER :]
        before: set[Key] = set()
        opened, red, odd, noise = 0, 0, 0, 0
        for night in Replay(values, images=True).nights(HISTORY):
            moved = {v.key for v in night.verdicts if v.outcome in (Outcome.WORSE, Outcome.BETTER)}
            opened, before = opened + len(moved - before), moved
            red += night.status is ExitStatus.FAILED
            far = [v for v in night.verdicts if v.change is not None and (v.change >= 1 or v.change <= -0.5)]
            odd += len(far)
            noise += sum(v.reason is Reason.NOISE for v in far)
        rate = 1000 * opened / len(values) / _AFTER
        rows += [
            Row(f"{lab.name}: recorded nights, new alarms in 1000 of a metric", f"{rate:.2f}"),
            Row("  red nights", f"{red} of {_AFTER}"),
            Row(
                "  figures twice as large or half called noise",
                f"{noise} of {odd}",
                goal="0",
                met=met(noise, 0),
            ),
        ]
    return rows


def _unchanged(known: Sequence[Lab], **options: bool) -> list[Row]:
    rows = []
    alarmed, undecided = Tally.empty(), Tally.empty()
    for lab in known:
        opened = metric_nights = 0
        for seed in _UNCHANGED:
            values = lab.shuffled(np.random.default_rng(seed), HISTORY + _AFTER)
            before: set[Key] = set()
            for night in Replay(values, **options).nights(HISTORY):
                moved = {v.key for v in night.verdicts if v.outcome in (Outcome.WORSE, Outcome.BETTER)}
                alarmed.hits[0].append(bool(moved))
                undecided.hits[0].append(night.status is ExitStatus.UNDECIDED)
                opened, before = opened + len(moved - before), moved
                metric_nights += len(values)
        what = f"{lab.name}: new alarms in 1000 metric-nights"
        theirs = f"Otava {_false_of_otava(values):.2f}" if not options else ""
        rows.append(Row(what, f"{1000 * opened / metric_nights:.2f}", theirs))
    return [
        alarmed.row("unchanged nights with an alarm", "<= 12 %", most=0.12),
        undecided.row("unchanged nights with exit status 6", "<= 10 %", most=0.10),
        *rows,
    ]


def _false_of_otava(values: Matrix) -> float:
    """Its false changes in 1000 nights of a metric."""
    ends, false = range(HISTORY + 1, values.shape[1] + 1), 0
    found = peers.change_points(values[:: max(1, len(values) // 40)], ends)
    for row in found:
        seen: set[int] = set()
        for point in itertools.chain.from_iterable(points[0] for points in row):
            false += all(abs(point - other) > _NEAR for other in seen) and point > HISTORY - 10
            seen.add(point)
    return 1000 * false / len(found) / len(ends)


def _chosen(random: np.random.Generator, metrics: int) -> np.ndarray:
    share = min(_SHARE, max(metrics // 2, 1))
    return np.arange(int(random.integers(share)), metrics, share)


def _steps(known: Sequence[Lab]) -> list[Row]:
    found = []
    for size in (0.03, 0.05, 0.10, 0.30):
        tallies = {after: Tally.empty() for after in (1, 3, 10)}
        first_quiet = Tally.empty()
        for lab, seed in itertools.product(known, _STEPS):
            random = np.random.default_rng(int(size * 1000) + seed)
            values = lab.shuffled(random, HISTORY + max(ENDS))
            mine = _chosen(random, len(values))
            quiet = spread(values[:, :HISTORY])[mine] < _QUIET
            values[mine, HISTORY:] *= 1 + size
            worse: set[int] = set()
            by_night: dict[int, set[int]] = {}
            for after, night in enumerate(Replay(values).nights(HISTORY), 1):
                worse |= {int(v.key.case) for v in night.verdicts if v.outcome is Outcome.WORSE}
                by_night[after] = set(worse)
            told = peers.change_points(values[mine], [HISTORY + after for after in ENDS])
            for after, tally in tallies.items():
                tally.hits[0] += [row in by_night[after] for row in mine]
                for place in range(len(peers.NAMES)):
                    hits = [_told(row, place, after) for row in told]
                    tally.hits[1 + place] += hits
                    if after == 1:
                        first_quiet.hits[1 + place] += np.array(hits)[quiet].tolist()
            first_quiet.hits[0] += [row in by_night[1] for row in mine[quiet]]
        goals = {(0.05, 3): 0.72, (0.10, 3): 0.87}
        for after, tally in tallies.items():
            least = goals.get((size, after))
            goal = f">= {least:.0%}" if least else ""
            found.append(tally.row(f"-{size:.0%} found within {after} nights", goal, least=least))
        goal, least = (">= 80 %", 0.80) if size == 0.30 else ("", None)
        found.append(
            first_quiet.row(f"-{size:.0%} in quiet series worse on the first night", goal, least=least)
        )
    return found


def _told(row: list[list[list[int]]], place: int, after: int) -> bool:
    ends = [n for n, end in enumerate(ENDS) if end <= after]
    return any(abs(point - HISTORY) <= _NEAR for n in ends for point in row[n][place])


def _mended(known: Sequence[Lab]) -> list[Row]:
    red = Tally.empty()
    for lab, seed in itertools.product(known, _ROUNDS):
        random = np.random.default_rng(seed)
        values = lab.shuffled(random, HISTORY + 12)
        mine = _chosen(random, len(values))
        values[mine, HISTORY : HISTORY + 5] *= 1.10
        told: dict[int, list[Verdict]] = {int(row): [] for row in mine}
        for night in Replay(values).nights(HISTORY):
            for verdict in night.verdicts:
                told.get(int(verdict.key.case), []).append(verdict)
        for verdicts in told.values():
            if any(v.outcome is Outcome.WORSE for v in verdicts[:5]):
                back = [v.outcome is Outcome.WORSE for v in verdicts[5:]]
                red.hits[0] += back
    return [red.row("-10 % for five nights, mended: red among the next seven nights", "<= 1 %", most=0.01)]


def _lasting(known: Sequence[Lab]) -> list[Row]:
    constant, red, same = (Tally.empty() for _ in range(3))
    for lab, seed in itertools.product(known, _ROUNDS):
        random = np.random.default_rng(seed)
        values = lab.shuffled(random, HISTORY + 40)
        mine = _chosen(random, len(values))
        values[mine, HISTORY:] *= 1.10
        since: dict[int, list[str]] = {int(row): [] for row in mine}
        words: dict[int, list[Outcome]] = {int(row): [] for row in mine}
        for after, night in enumerate(Replay(values).nights(HISTORY), 1):
            for verdict in night.verdicts:
                row = int(verdict.key.case)
                if row in since and after > 3:
                    if verdict.outcome is Outcome.WORSE:
                        since[row].append(verdict.since)
                    words[row].append(verdict.outcome)
        for row, runs in since.items():
            if runs and words[row].index(Outcome.WORSE) <= 7:
                constant.hits[0].append(len(set(runs)) == 1)
                red.hits[0] += [word is Outcome.WORSE for word in words[row][7:]]
                same.hits[0] += [word in (Outcome.SAME, Outcome.BETTER) for word in words[row][7:]]
    return [
        constant.row("-10 % for 40 nights: one date on all nights", "100 %", least=1.0),
        red.row("  red on nights 11 to 40"),
        same.row("  called the same or better on nights 11 to 40", "<= 1 %", most=0.01),
    ]


def _wide(known: Sequence[Lab]) -> list[Row]:
    named, dated, lines = Tally.empty(), Tally.empty(), []
    members: list[float] = []
    for lab in known:
        if len(lab.values) < 100:
            continue
        random = np.random.default_rng(6)
        values = lab.shuffled(random, HISTORY + 12)
        values[:, HISTORY:] *= 1 + np.clip(random.normal(0.06, 0.03, (len(values), 1)), 0, None)
        for night in Replay(values, kernel_from=HISTORY).nights(HISTORY):
            wide = night.causes[:1]
            named.hits[0].append(any("kernel" in one.sentence() for one in wide))
            dated.hits[0].append(any(one.since == f"night-{HISTORY:03}" for one in wide))
            members.append(len(wide[0].members) / len(values) if wide else 0.0)
            judgement = Judgement("r", "b", "last:30", night.verdicts, causes=night.causes)
            lines.append(report.text(judgement, width=120).count("\n"))
    return [
        named.row("a new kernel and -6 ± 3 % everywhere: nights that name it", ">= 11 of 12", least=11 / 12),
        dated.row("  nights with its date"),
        Row("  metrics in the first cause, median", f"{np.median(members):.0%}"),
        Row("  lines printed, at most", str(max(lines)), goal="<= 25", met=met(max(lines), 25)),
    ]


def _young(known: Sequence[Lab]) -> list[Row]:
    found = []
    for history, goal in ((5, 0.07), (8, 0.07), (16, 0.12), (25, 0.12)):
        false, told = Tally.empty(), []
        for lab in known:
            random = np.random.default_rng(7)
            for _ in range(10):
                values = lab.shuffled(random, history + 1)
                (night,) = Replay(values).nights(history)
                false.hits[0].append(any(v.outcome is Outcome.WORSE for v in night.verdicts))
                told.append(np.mean([v.outcome is not Outcome.UNKNOWN for v in night.verdicts]))
        row = false.row(
            f"{history} nights of history, unchanged: nights with a worse", f"<= {goal:.0%}", most=goal
        )
        found += [row, Row("  decided", f"{np.mean(told):.0%}")]
    return found


def _drifting(known: Sequence[Lab]) -> list[Row]:
    by_80, by_140, drifting, odd = (Tally.empty() for _ in range(4))
    for lab in known:
        if lab.values.shape[1] < 30 + 140:
            continue
        random = np.random.default_rng(8)
        values = lab.shuffled(random, 30 + 140)
        quiet = np.flatnonzero(spread(values) < _QUIET)
        mine = random.permutation(quiet)[: max(len(quiet) // 10, 2)]
        rest = np.setdiff1d(quiet, mine)
        still = values[rest[:60]]
        values[mine, 30:] *= 1 + _DRIFT * np.arange(1, 141)
        found: set[int] = set()
        lasting: set[int] = set()
        for after, night in enumerate(Replay(values).nights(30, stride=5), 0):
            worse = [v for v in night.verdicts if v.outcome is Outcome.WORSE and v.alarm]
            found |= {int(v.key.case) for v in worse}
            lasting |= {int(v.key.case) for v in worse if v.slow or (v.alarm and v.alarm.nights > _LASTING)}
            if after * 5 == 80:
                by_80.hits[0] += [row in found for row in mine]
        by_140.hits[0] += [row in found for row in mine]
        drifting.hits[0] += [row in lasting for row in rest]
        odd.hits[0] += [row in found for row in rest]
        ends = [30 + 80, 30 + 140]
        for rows, at_80, at_140 in ((values[mine], by_80, by_140), (still, None, drifting)):
            for points in peers.change_points(rows, ends):
                for place in range(len(peers.NAMES)):
                    if at_80:
                        at_80.hits[1 + place].append(bool(points[0][place]))
                    at_140.hits[1 + place].append(bool(points[0][place] or points[1][place]))
    return [
        by_80.row(f"drift of {_DRIFT:.2%} a night, quiet series: found by night 80", ">= 85 %", least=0.85),
        by_140.row("  by night 140"),
        drifting.row("no drift: slowly or for ten nights worse, by night 140", "<= 3 %", most=0.03),
        odd.row("  worse on any night, those on which the machine was slow included"),
    ]


PARTS: dict[str, Callable[[Sequence[Lab]], list[Row]]] = {
    "unchanged": _unchanged,
    "images": functools.partial(_unchanged, images=True),
    "patient": functools.partial(_unchanged, one_night=False),
    "nights": _nights,
    "loop": _loop,
    "steps": _steps,
    "mended": _mended,
    "lasting": _lasting,
    "wide": _wide,
    "young": _young,
    "drifting": _drifting,
}
