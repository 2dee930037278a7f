"""Nights of a lab judged one after the other by the code of `evmperf check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evmperf.judge import nightly
from evmperf.judge.causes import causes
from evmperf.judge.nights import Track
from evmperf.model.alarm import MetricAlarm
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict, VerdictCause
from selftests.instruments.speed.noises import Matrix


@dataclass(frozen=True)
class Night:
    verdicts: Sequence[Verdict]
    causes: Sequence[VerdictCause]

    @property
    def status(self) -> ExitStatus:
        return Judgement("", "", "", self.verdicts, causes=self.causes).exit_status


class Replay:
    """Rows are metrics of which lower is better, NaN for none; the kernel is another from the night
    `kernel_from` on, or every night. `one_night` is whether a single night may decide.
    """

    def __init__(
        self, values: Matrix, kernel_from: int | None = None, *, images: bool = False, one_night: bool = True
    ) -> None:
        self.values, self.one_night = values, one_night
        count = values.shape[1]
        kernels = ["A" if kernel_from is None or n < kernel_from else "B" for n in range(count)]
        if images:
            kernels = [str(n) for n in range(count)]
        self.runs = [
            Run(f"night-{n:03}", "board", "full", started_ns=n, facts=Facts(kernel=kernels[n]))
            for n in range(count)
        ]
        self.keys = [Key(f"table-{n % 40}", str(n), "time") for n in range(len(values))]

    def nights(self, first: int, stride: int = 1) -> Iterator[Night]:
        """Each night from `first` on, judged with what was known then."""
        tracks = [Track() for _ in self.keys]
        for at, run in enumerate(self.runs):
            figures = [float(value) for value in self.values[:, at]]
            alarms: dict[Key, MetricAlarm | None] = {}
            if at >= first and (at - first) % stride == 0:
                series = [
                    nightly.series_of(track, Verdict(key, Outcome.SAME, "s", Direction.LOWER, value), run.id)
                    for key, track, value in zip(self.keys, tracks, figures, strict=True)
                ]
                alike = nightly.alike(self.runs[: at + 1])
                found = nightly.latest(series, alike=alike, one_night=self.one_night)
                alarms = {verdict.key: verdict.alarm for verdict in found}
                yield Night(found, causes(found, self.runs[: at + 1]))
            for key, track, value in zip(self.keys, tracks, figures, strict=True):
                track.take(value, run.id, alarms.get(key))
