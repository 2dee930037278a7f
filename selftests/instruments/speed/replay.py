"""Nights of a lab judged one after the other by the code of `evmperf check`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evmperf.judge import nightly
from evmperf.judge.causes import causes
from evmperf.judge.nights import Track
from evmperf.model.alarm import MetricAlarm
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict, VerdictCause

HISTORY = 40


@dataclass(frozen=True)
class Night:
    """The verdicts on a night, one a row."""

    verdicts: Sequence[Verdict]
    causes: Sequence[VerdictCause]

    @property
    def status(self):
        return Judgement("", "", "", self.verdicts, causes=self.causes).exit_status

    @property
    def moved(self):
        """What is worse or better."""
        return {v.key for v in self.verdicts if v.outcome in (Outcome.WORSE, Outcome.BETTER)}

    @property
    def worse(self):
        """Whether each row is worse."""
        return np.array([verdict.outcome is Outcome.WORSE for verdict in self.verdicts])


def replay(values, first=HISTORY, stride=1, *, kernel_from=None, images=False, one_night=True):
    """Each night from `first` on, judged with what was known then. Rows are metrics of which lower is better,
    NaN for none; the kernel is another from the night `kernel_from` on, or every night (`images`).
    `one_night` is whether a single night may decide.
    """
    keys = [Key(f"table-{n % 40}", str(n), "time") for n in range(len(values))]
    tracks = [Track() for _ in keys]
    runs: list[Run] = []
    for at in range(values.shape[1]):
        kernel = str(at) if images else "A" if kernel_from is None or at < kernel_from else "B"
        run = Run(f"night-{at:03}", "board", "full", started_ns=at, facts=Facts(kernel=kernel))
        runs.append(run)
        figures = [float(value) for value in values[:, at]]
        alarms: dict[Key, MetricAlarm | None] = {}
        if at >= first and (at - first) % stride == 0:
            series = [
                nightly.series_of(track, Verdict(key, Outcome.SAME, "s", Direction.LOWER, value), run.id)
                for key, track, value in zip(keys, tracks, figures, strict=True)
            ]
            found = nightly.latest(series, alike=nightly.alike(runs), one_night=one_night)
            alarms = {verdict.key: verdict.alarm for verdict in found}
            yield Night(found, causes(found, runs))
        for key, track, value in zip(keys, tracks, figures, strict=True):
            track.take(value, run.id, alarms.get(key))
