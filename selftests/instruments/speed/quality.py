"""How often verdicts are wrong, and how soon they are right, on noise that is made.

A night is judged by the code of `evmperf check`. Alarms are counted by cause, as a notice does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evmperf.judge import judge, shift
from evmperf.judge.causes import causes
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Verdict, VerdictCause
from selftests.instruments.speed.figures import Row
from selftests.instruments.speed.noises import CV, KINDS, Matrix, made

METRICS = 300
HISTORY = 30
STEP = 0.05
_NIGHTS = 60
_LABS = 6
_STEPS = 15
"""Metrics of a lab that have a step, so many nights long."""
_DRIFT = 0.0005
"""Loss a night, as a share."""
_MOST_ALARMS = 0.15
_SPREADS = 5.0


def judged(values: Matrix) -> tuple[list[Verdict], list[VerdictCause]]:
    """Judge the last column by those before."""
    runs = [Run(f"night-{number:03}", "board", "full") for number in range(values.shape[1])]
    ids = [run.id for run in runs]
    found = judge.latest(
        [
            judge.JudgedSeries(
                Verdict(
                    Key(f"table-{number % 40}", str(number), "time"),
                    Outcome.SAME,
                    "s",
                    Direction.HIGHER,
                    float(row[-1]),
                ),
                [float(value) for value in row[:-1]],
                ids,
            )
            for number, row in enumerate(values)
        ]
    )
    return found, causes(found, runs)


def alone(values: Matrix, rows: Sequence[int]) -> list[bool]:
    """Whether each of some metrics is called changed, as if it were the only one in its lab."""
    found = shift.judge([list(map(float, row)) for row in values], worse=[-1] * len(values))
    return [found[row].p <= shift.LEVEL / len(values) for row in rows]


def quality() -> list[Row]:
    rows = [row for kind in KINDS for row in _of_kind(kind)]
    rows += [_drifting(), *_odd()]
    return rows


def _share(what: str, hits: Sequence[bool], least: float | None, note: str = "") -> Row:
    share = float(np.mean(hits))
    return Row(
        what,
        f"{sum(hits)} of {len(hits)}{note}",
        figure=f"{share:.0%}",
        goal=f">= {least:.0%}" if least else "",
        met=_met(least is None or share >= least),
    )


def _met(met: bool) -> str:
    return "yes" if met else "NO"


def _of_kind(kind: str) -> list[Row]:
    random = np.random.default_rng(20261122)
    nights = [judged(made(kind, random, METRICS, HISTORY + 1)) for _ in range(_NIGHTS)]
    alarms = [bool(found) for _, found in nights]
    share = float(np.mean(alarms))
    unknown = np.mean([v.outcome is Outcome.UNKNOWN for found, _ in nights for v in found])
    rows = [
        Row(
            f"{kind}: nights with an alarm",
            f"{sum(alarms)} of {len(alarms)}",
            f"{unknown:.0%} of verdicts unknown",
            f"{share:.0%}",
            f"<= {_MOST_ALARMS:.0%}",
            _met(share <= _MOST_ALARMS),
        )
    ]
    goals = {3: 0.60, 10: 0.90} if kind == "independent" else {}
    for nights_after in (3, 10):
        hits: list[bool] = []
        for _ in range(_LABS):
            values = made(kind, random, METRICS, HISTORY + nights_after)
            mine = _chosen(METRICS)
            values[mine, HISTORY:] *= 1 - STEP
            hits += alone(values, mine)
        what = f"{kind}: step of -{STEP:.0%} found after {nights_after} nights"
        rows.append(_share(what, hits, goals.get(nights_after)))
    return rows


def _chosen(metrics: int) -> list[int]:
    return list(range(0, metrics, metrics // _STEPS))[:_STEPS]


def _drifting() -> Row:
    """Judged every tenth night; found once is found."""
    random = np.random.default_rng(1)
    hits: list[bool] = []
    for _ in range(_LABS // 2):
        values = made("independent", random, METRICS, HISTORY + 80)
        mine = _chosen(METRICS)
        values[mine, HISTORY:] *= 1 - _DRIFT * np.arange(1, 81)
        looks = [alone(values[:, : HISTORY + after], mine) for after in range(10, 81, 10)]
        hits += [any(seen) for seen in zip(*looks, strict=True)]
    return _share(f"drift of -{_DRIFT:.2%} a night found within 80 nights", hits, 0.90)


def _odd() -> list[Row]:
    """One odd night in the history, then a step of 5 times the spread."""
    rows = []
    for metrics in (1, METRICS):
        for after in (1, 3):
            random = np.random.default_rng(2)
            same: list[bool] = []
            found: list[bool] = []
            for number in range(20):
                values = made("independent", random, metrics, HISTORY + after)
                values[0, number + 5] *= (0.5, 2.0)[number % 2]
                values[0, HISTORY:] *= 1 - _SPREADS * CV
                (verdict, *_), _ = judged(values)
                same.append(verdict.outcome is Outcome.SAME)
                found.append(verdict.outcome is Outcome.WORSE)
            what = f"step of 5 spreads beside an odd night, {metrics} metrics, {after} nights"
            note = f", {sum(same)} hidden"
            rows.append(_share(what, found, 0.95 if after > 1 else None, note))
            if any(same):
                rows[-1] = Row(what, "called the same", met="NO")
    return rows
