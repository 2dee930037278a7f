"""How often verdicts are wrong and how soon they are right on recorded series, beside Otava and asv.

Nights are judged one after the other, as `evmperf check` does, and the life of each alarm goes on. A lab is
some series of one machine without its changes of level (as asv finds them), its runs in a random
order: then nothing changes but what is put in, and what a tool reports besides is false. Series with an even
number serve for tuning, the others for judging.
"""

import csv
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.verdict import Judgement, Outcome, Reason
from evmperf.publish.report import verdicts as report
from selftests.instruments.speed import peers
from selftests.instruments.speed.figures import Row, met
from selftests.instruments.speed.machines import Lab, labs
from selftests.instruments.speed.replay import HISTORY, replay
from selftests.support import seeds

_AFTER = 40
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
ENDS = (1, 2, 3, 10)
_ROUNDS = (4, 5, 6, 7)
"""Random orders of the nights that a loss is put into."""
_STEPS = range(4, 14)
"""The same of a step: what its first night is like decides, and each order has one."""
_LOOP_FIRST = 66
_UNCHANGED = range(1, 5)
"""Random orders of unchanged nights."""


def spread(values):
    """Relative spread from run to run, a row each."""
    return np.asarray(np.median(np.abs(np.diff(np.log(values), axis=1)), axis=1) * 1.48 / np.sqrt(2))


@dataclass
class Tally:
    """Hits of a row by judge: evmperf first, then the peers."""

    hits: tuple[list[bool], ...] = field(default_factory=lambda: tuple([] for _ in ("", *peers.NAMES)))

    def add(self, *hits):
        """Add those of evmperf, then of peers if they were asked."""
        for mine, more in zip(self.hits, hits, strict=False):
            mine.extend(more)

    def row(self, what, *, least=0.0, most=1.0):
        ours, *theirs = (float(np.mean(h)) if h else float("nan") for h in self.hits)
        goal = f">= {least:.0%}" if least else f"<= {most:.0%}" if most < 1 else ""
        named = zip(peers.NAMES, theirs, strict=True)
        beside = ", ".join(f"{name} {share:.0%}" for name, share in named if not np.isnan(share))
        said = f"{sum(self.hits[0])} of {len(self.hits[0])}"
        kept = "yes" if least <= ours <= most else "NO"
        return Row(what, said, beside, f"{ours:.1%}", goal, kept if goal else "")


def judging(*parts):
    """The rows of some parts, or of all, on the half of the series that no constant was chosen by."""
    return _rows(labs(1), parts)


def _rows(given, parts=()):
    known = list(given)
    return [row for part in parts or PARTS for row in PARTS[part](known)]


def _loop(_):
    """Motor controllers in a loop: mean periods, which cannot change, in every run."""
    (file,) = seeds.real("series-3", "*.csv")
    with file.open() as lines:
        runs = list(csv.DictReader(lines))
    periods = [name for name in runs[0] if name.startswith("mean") and "period" in name]
    values = np.array([[float(run[name]) for run in runs] for name in periods])
    nights = list(replay(values, _LOOP_FIRST, images=True))
    rows = []
    for place, (name, (points,)) in enumerate(
        zip(periods, peers.change_points(values, [len(runs)]), strict=True)
    ):
        moved = [night.verdicts[place].outcome in (Outcome.WORSE, Outcome.BETTER) for night in nights]
        beside = ", ".join(f"{peer} {len(one)}" for peer, one in zip(peers.NAMES, points, strict=True))
        told = f"{sum(moved)} of {len(moved)}"
        rows.append(Row(f"{name}: alarms", told, beside, goal="0", met=met(sum(moved), 0)))
    return rows


def _nights(_):
    """Nights in their order, with the changes of level that are in them."""
    rows = []
    for lab in labs(1, levelled=False):
        values = lab.values[:, -HISTORY - _AFTER :]
        before: set[Key] = set()
        opened, red, odd, noise = 0, 0, 0, 0
        for night in replay(values, images=True):
            opened, before = opened + len(night.moved - before), night.moved
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


def _unchanged(known, **options):
    rows = []
    alarmed, undecided = Tally(), Tally()
    for lab in known:
        opened = metric_nights = 0
        for seed in _UNCHANGED:
            values = lab.shuffled(np.random.default_rng(seed), HISTORY + _AFTER)
            before: set[Key] = set()
            for night in replay(values, **options):
                alarmed.add([bool(night.moved)])
                undecided.add([night.status is ExitStatus.UNDECIDED])
                opened, before = opened + len(night.moved - before), night.moved
                metric_nights += len(values)
        what = f"{lab.name}: new alarms in 1000 metric-nights"
        theirs = f"Otava {_false_of_otava(values):.2f}" if not options else ""
        rows.append(Row(what, f"{1000 * opened / metric_nights:.2f}", theirs))
    return [
        alarmed.row("unchanged nights with an alarm", most=0.12),
        undecided.row("unchanged nights with exit status 6", most=0.10),
        *rows,
    ]


def _false_of_otava(values):
    """Its false changes in 1000 nights of a metric."""
    ends, false = range(HISTORY + 1, values.shape[1] + 1), 0
    found = peers.change_points(values[:: max(1, len(values) // 40)], ends)
    for row in found:
        seen: set[int] = set()
        for point in itertools.chain.from_iterable(points[0] for points in row):
            false += all(abs(point - other) > _NEAR for other in seen) and point > HISTORY - 10
            seen.add(point)
    return 1000 * false / len(found) / len(ends)


def _slower(known, orders, nights, factor, lasting=None):
    """The nights of each lab in random orders, some with a loss behind the history; and the rows of those."""
    for lab, order in itertools.product(known, orders):
        random = np.random.default_rng(order)
        values = lab.shuffled(random, HISTORY + nights)
        share = min(_SHARE, max(len(values) // 2, 1))
        mine = np.arange(int(random.integers(share)), len(values), share)
        values[mine, HISTORY : HISTORY + (lasting or nights)] *= factor
        yield values, mine


def _steps(known):
    found = []
    goals = {(0.05, 3): 0.72, (0.10, 3): 0.87}
    for size in (0.03, 0.05, 0.10, 0.30):
        tallies = {after: Tally() for after in (1, 3, 10)}
        first_quiet = Tally()
        orders = [int(size * 1000) + seed for seed in _STEPS]
        for values, mine in _slower(known, orders, max(ENDS), 1 + size):
            quiet = spread(values[:, :HISTORY])[mine] < _QUIET
            worse = np.logical_or.accumulate([night.worse[mine] for night in replay(values)])
            told = peers.change_points(values[mine], [HISTORY + after for after in ENDS])
            for after, tally in tallies.items():
                hits = [worse[after - 1], *_told(told, after)]
                tally.add(*hits)
                if after == 1:
                    first_quiet.add(*(one[quiet] for one in hits))
        for after, tally in tallies.items():
            what = f"-{size:.0%} found within {after} nights"
            found.append(tally.row(what, least=goals.get((size, after), 0.0)))
        what = f"-{size:.0%} in quiet series worse on the first night"
        found.append(first_quiet.row(what, least=0.80 if size == 0.30 else 0.0))
    return found


def _told(rows, after):
    """Whether each peer says of each row within so many nights that it changed."""
    ends = [n for n, end in enumerate(ENDS) if end <= after]
    return np.array(
        [
            [any(abs(point - HISTORY) <= _NEAR for n in ends for point in row[n][peer]) for row in rows]
            for peer in range(len(peers.NAMES))
        ]
    )


def _mended(known):
    red = Tally()
    for values, mine in _slower(known, _ROUNDS, 12, 1.10, lasting=5):
        worse = np.transpose([night.worse[mine] for night in replay(values)])
        red.add(worse[worse[:, :5].any(axis=1), 5:].flat)
    return [red.row("-10 % for five nights, mended: red among the next seven nights", most=0.01)]


def _lasting(known):
    constant, red, same = (Tally() for _ in range(3))
    for values, mine in _slower(known, _ROUNDS, 40, 1.10):
        nights = list(replay(values))[3:]
        for row in mine:
            words = [night.verdicts[row].outcome for night in nights]
            since = {v.since for night in nights if (v := night.verdicts[row]).outcome is Outcome.WORSE}
            if Outcome.WORSE in words[:8]:
                constant.add([len(since) == 1])
                red.add(word is Outcome.WORSE for word in words[7:])
                same.add(word in (Outcome.SAME, Outcome.BETTER) for word in words[7:])
    return [
        constant.row("-10 % for 40 nights: one date on all nights", least=1.0),
        red.row("  red on nights 11 to 40"),
        same.row("  called the same or better on nights 11 to 40", most=0.01),
    ]


def _wide(known):
    named, dated, lines = Tally(), Tally(), []
    members: list[float] = []
    for lab in known:
        if len(lab.values) < 100:
            continue
        random = np.random.default_rng(6)
        values = lab.shuffled(random, HISTORY + 12)
        values[:, HISTORY:] *= 1 + np.clip(random.normal(0.06, 0.03, (len(values), 1)), 0, None)
        for night in replay(values, kernel_from=HISTORY):
            wide = night.causes[:1]
            named.add(["kernel" in one.sentence() for one in wide] or [False])
            dated.add([one.since == f"night-{HISTORY:03}" for one in wide] or [False])
            members.append(len(wide[0].members) / len(values) if wide else 0.0)
            judgement = Judgement("r", "b", "last:30", night.verdicts, causes=night.causes)
            lines.append(report.text(judgement, width=120).count("\n"))
    return [
        named.row("a new kernel and -6 ± 3 % everywhere: nights that name it", least=11 / 12),
        dated.row("  nights with its date"),
        Row("  metrics in the first cause, median", f"{np.median(members):.0%}"),
        Row("  lines printed, at most", str(max(lines)), goal="<= 25", met=met(max(lines), 25)),
    ]


def _young(known):
    found = []
    for history, goal in ((5, 0.07), (8, 0.07), (16, 0.12), (25, 0.12)):
        false, told = Tally(), []
        for lab in known:
            random = np.random.default_rng(7)
            for _ in range(10):
                values = lab.shuffled(random, history + 1)
                (night,) = replay(values, history)
                false.add([night.worse.any()])
                told.append(np.mean([v.outcome is not Outcome.UNKNOWN for v in night.verdicts]))
        row = false.row(f"{history} nights of history, unchanged: nights with a worse", most=goal)
        found += [row, Row("  decided", f"{np.mean(told):.0%}")]
    return found


def _drifting(known):
    by_80, by_140, drifting, odd = (Tally() for _ in range(4))
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
        for after, night in enumerate(replay(values, 30, stride=5)):
            worse = [v for v in night.verdicts if v.outcome is Outcome.WORSE and v.alarm]
            found |= {int(v.key.case) for v in worse}
            lasting |= {int(v.key.case) for v in worse if v.slow or (v.alarm and v.alarm.nights > _LASTING)}
            if after * 5 == 80:
                by_80.add(row in found for row in mine)
        by_140.add(row in found for row in mine)
        drifting.add(row in lasting for row in rest)
        odd.add(row in found for row in rest)
        for rows, at_80, at_140 in ((values[mine], by_80, by_140), (still, Tally(), drifting)):
            for first, second in peers.change_points(rows, [30 + 80, 30 + 140]):
                at_80.add([], *([bool(points)] for points in first))
                at_140.add([], *([bool(a or b)] for a, b in zip(first, second, strict=True)))
    return [
        by_80.row(f"drift of {_DRIFT:.2%} a night, quiet series: found by night 80", least=0.85),
        by_140.row("  by night 140"),
        drifting.row("no drift: slowly or for ten nights worse, by night 140", most=0.03),
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
