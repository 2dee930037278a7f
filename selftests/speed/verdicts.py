"""How good and how fast verdicts are, on generated nights.

Noise comes from a generator with a fixed seed (normal, 2 % coefficient of variation), and from the
spreads that the published guides in baselines/ print. A night judges 700 metrics at once.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from evmperf.influx.client import Store
from evmperf.influx.push import RunPush
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Direction, Result, Sample, Status
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Verdict
from evmperf.published import artefacts
from evmperf.published import releases as gather
from evmperf.published.declared import tables
from evmperf.regress import judge
from evmperf.regress.nights import Night, Past
from evmperf.runs import spool
from selftests.speed.figures import JSON, Row, Used, met, python, ratio, seconds, used
from selftests.support.influxd import points, running

METRICS = 700
HISTORY = 20
AFTER = 10
CV = 0.02
STEP = 0.05
_NIGHTS = 500
"""Nights in which nothing changed: a share of 12 % is then 1.5 points off at most, mostly."""
_STEPS = 200
_MOST_ALARMS = 0.15
_YEAR = 365
_DAY_NS = 86_400 * 10**9
UNDER: dict[str, str] = {}
"""All nights are alike."""
_ALARMS = (Outcome.WORSE, Outcome.BETTER)

Matrix = NDArray[np.float64]
Generate = Callable[[np.random.Generator, int], Matrix]


def _keys() -> list[Key]:
    """Metrics that are judged, as many as a full run has, with their tables' own names."""
    found = dict.fromkeys(
        key for entry in gather.published() for key in figures(entry.results()) if judged(key)
    )
    # The guides leave some out that a run has: more rows of a table whose rows are free.
    more = (
        Key("emmc_ext4", str(number), metric)
        for number in range(METRICS)
        for metric in ("write_throughput", "read_throughput")
    )
    return [*found, *more][:METRICS]


def judged(key: Key) -> bool:
    table = tables()[key.benchmark]
    metric = table.metric(key.case, key.metric)
    second_name = key.case in table.aliases
    return metric is not None and metric.better is not Direction.NONE and not second_name


def _normal(generator: np.random.Generator, nights: int) -> Matrix:
    return 100 * (1 + CV * generator.standard_normal((METRICS, nights)))


def _heavy(generator: np.random.Generator, nights: int) -> Matrix:
    """The same spread with the tails of Student's t with 3 degrees of freedom."""
    return 100 * (1 + CV * generator.standard_t(3, (METRICS, nights)) / np.sqrt(3))


def published() -> list[float]:
    """The relative spreads that guides print, as standard deviations, where they are noise."""
    found = []
    for entry in gather.published():
        known = figures(entry.results())
        doubts = artefacts.doubts(known)
        for key, figure in known.items():
            noise = key not in doubts
            if figure.mean and figure.low is not None and figure.high is not None and noise:
                found.append((figure.high - figure.low) / 3 / abs(figure.mean))
    return found


def _published(limit: float) -> Generate:
    """Nights with the published spreads up to a limit, drawn at random."""
    spreads = np.array([s for s in published() if s <= limit])

    def generate(generator: np.random.Generator, nights: int) -> Matrix:
        chosen = generator.choice(spreads, METRICS)[:, None]
        return np.round(100 * (1 + chosen * generator.standard_normal((METRICS, nights))), 2)

    return generate


def verdicts_of(keys: Sequence[Key], values: Matrix) -> list[Verdict]:
    """Judge the last column by those before it, through the same code as `evmperf check`."""
    nights = [
        Night(
            Run(f"night-{column:03}", "board", "full"),
            {
                key: Past(float(value), "", UNDER)
                for key, value in zip(keys, values[:, column], strict=True)
            },
        )
        for column in range(values.shape[1] - 1)
    ]
    run = Run("tonight", "board", "full")
    subject = judge.Subject(
        run,
        {key: _figure(key, float(v)) for key, v in zip(keys, values[:, -1], strict=True)},
    )
    return judge.against_nights(subject, nights)


def _figure(key: Key, value: float) -> Figure:
    result = Result(key.benchmark, 0, "", key.case, {}, "", Status.MEASURED, ())
    return Figure(key, "", value, value, value, value, None, 1, 0, "", result)


def quality() -> list[Row]:
    keys = _keys()
    rows = []
    for what, generate, least in (
        (f"normal noise, cv {CV:.0%}", _normal, 0.95),
        ("published spreads up to 2 %", _published(0.02), 0.95),
        (f"heavy tails (t, 3 degrees), cv {CV:.0%}", _heavy, 0.90),
    ):
        rows += _of_noise(what, keys, generate, least)
    return rows


def _of_noise(what: str, keys: Sequence[Key], generate: Generate, least: float) -> list[Row]:
    """False alarms, and how many steps are found: `least` is the share that should be."""
    generator = np.random.default_rng(20261121)
    alarms = [
        sum(v.outcome in _ALARMS for v in verdicts_of(keys, generate(generator, HISTORY + 1)))
        for _ in range(_NIGHTS)
    ]
    per_metric = sum(alarms) / (len(alarms) * METRICS)
    nights = sum(bool(count) for count in alarms) / len(alarms)
    found = 0
    for number in range(_STEPS):
        values = generate(generator, HISTORY + AFTER)
        row = number % METRICS
        values[row, HISTORY:] *= 1 - STEP
        changed = {v.key for v in verdicts_of(keys, values) if v.outcome in _ALARMS}
        found += keys[row] in changed
    share = found / _STEPS
    return [
        Row(
            f"false alarms a metric, {what}",
            f"{sum(alarms)} of {len(alarms) * METRICS}",
            figure=f"{per_metric:.3%}",
            goal="<= 1 %",
            met=met(per_metric, 0.01),
        ),
        Row(
            f"nights of {METRICS} metrics with a false alarm, {what}",
            f"{sum(map(bool, alarms))} of {len(alarms)}",
            figure=f"{nights:.1%}",
            goal=f"<= {_MOST_ALARMS:.0%}",
            met=met(nights, _MOST_ALARMS),
        ),
        Row(
            f"one {STEP:.0%} step found after {AFTER} runs, {what}",
            f"{found} of {_STEPS}",
            figure=f"{share:.1%}",
            goal=f">= {least:.0%}",
            met="yes" if share >= least else "NO",
        ),
    ]


def speed() -> list[Row]:
    """`evmperf check` of a full run against a year, against json reading the same files; the same
    year from InfluxDB, in seconds.
    """
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        results = Path(folder) / "results"
        results.mkdir()
        size = _write_year(results) / 1e6
        check = [
            sys.executable, "-m", "evmperf", "check", f"night-{_YEAR:03}", "--dry-run",
            "--against", f"last:{_YEAR}", "--results", str(results),
        ]  # fmt: skip
        read = python(JSON, *map(str, sorted(results.glob("*/results.jsonl"))))
        ours = [used(check, _JUDGED) for _ in range(3)]
        reference = [used(read) for _ in range(3)]
        stored = _from_influx(Path(folder), check)
    return [
        ratio(f"check against {_YEAR} nights ({size:.0f} MB) vs json, CPU",
              [need.cpu_s for need in ours], [need.cpu_s for need in reference], 3),
        _memory(ours),
        Row(
            f"check against {_YEAR} nights in InfluxDB vs in a folder, n {len(stored)}",
            seconds(wall_s := statistics.median(need.wall_s for need in stored)),
            seconds(beside := statistics.median(need.wall_s for need in ours)),
            f"{wall_s / beside:.2f} x", "<= 5 s", met(wall_s, 5),
        ),
        _memory(stored),
    ]  # fmt: skip


_JUDGED = (ExitStatus.OK, ExitStatus.FAILED)


def _memory(needs: Sequence[Used]) -> Row:
    peak = max(need.peak_mib for need in needs)
    return Row("  its memory", f"{peak:.0f} MiB", goal="<= 150 MiB", met=met(peak, 150))


def _from_influx(folder: Path, check: Sequence[str]) -> list[Used]:
    """The check of a year that is in InfluxDB; the server's own time is in it."""
    with running(folder / "influxd") as server:
        config = server.bucket()
        with Store(config) as store:
            for run in sorted((folder / "results").iterdir()):
                RunPush.of(store, run, again=True).send()
        assert points(config, "sample") == METRICS * (_YEAR + 1)
        names = ("url", "token", "org", "bucket")
        named = {f"EVMPERF_INFLUX_{name.upper()}": getattr(config, name) for name in names}
        return [used([*check, "--from", "influx"], _JUDGED, **named) for _ in range(3)]


def _write_year(results: Path) -> int:
    """A year of full runs, with records as long as real ones; returns their bytes."""
    keys = _keys()
    generator = np.random.default_rng(1)
    values = _normal(generator, _YEAR + 1)
    written = 0
    for night in range(_YEAR + 1):
        run = Run(
            f"night-{night:03}", "board", "full", started_ns=_DAY_NS * (night + 1), release="1",
            os="Linux",
        )  # fmt: skip
        folder = results / run.id
        folder.mkdir()
        (folder / "run.json").write_bytes(msgspec.json.encode(run))
        lines = [_line(key, values[row, night], run.started_ns) for row, key in enumerate(keys)]
        written += (folder / "results.jsonl").write_bytes(b"".join(lines))
    return written


def _line(key: Key, value: float, started_ns: int) -> bytes:
    unit = tables()[key.benchmark].metric(key.case, key.metric)
    sample = Sample(key.metric, float(value), str(unit.unit) if unit else "", 0, started_ns + 1)
    result = Result(
        key.benchmark, 1, "driver", key.case, {"block_size": "4k", "direction": "write"}, "full",
        Status.MEASURED, (sample,), tools={"fio": "fio-3.36", "mpstat": "sysstat 12.6"},
        raw=(f"raw/{key.benchmark}/{key.case}/write-0.json",), started_ns=started_ns,
        duration_s=60.0, tool_s=59.0,
    )  # fmt: skip
    return spool.line(result)
