"""Sending runs: those that are on the disk and not whole in the database, as often as one likes; no run at
work, as no measurement waits for a server or shares the network with one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evmperf.measure.runs import spool
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.units import counted
from evmperf.publish.influx.client import Config, Store, load
from evmperf.publish.influx.lines import SCHEMA, RunLines

_BATCH_BYTES = 900_000
"""Some 5000 points, InfluxData's advice for good throughput, and what proxies let through: 1 MB (nginx)."""

STATE = "influx.json"
"""File in a run's folder: what was sent where. Without it everything is sent again."""


def state_key(config: Config) -> str:
    """What a bucket is called in a run's state: after a change of what is stored everything is sent again."""
    return f"{config.url}|{config.org}|{config.bucket}|{SCHEMA}"


def progress(folder: Path) -> dict[str, int]:
    """Bytes of a run's files that each bucket has; {} without a state, and for a damaged one."""
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=dict[str, int])
    return {}


def waiting(results: Path, config: Config) -> list[Path]:
    """Runs that are not whole in a bucket, oldest first."""
    key = state_key(config)
    there = sorted(results.glob("*/run.json"), key=lambda file: file.stat().st_mtime)
    return [file.parent for file in there if progress(file.parent).get(key) != _size(file.parent)]


def _size(folder: Path) -> int:
    files = (folder / spool.RECORDS, folder / spool.VERDICTS)
    return sum(file.stat().st_size for file in files if file.exists())


@dataclass
class Pushed:
    """A run that the server has: so many points, and why it has none of them or not all."""

    folder: Path
    points: int = 0
    problems: list[str] = field(default_factory=list)


def push(store: Store, folders: Iterable[Path]) -> Iterator[Pushed]:
    """Send whole runs; yields each run when the server has it, or why it is left out: a damaged one or one at
    work stops no other. Raises StoreError when the server takes nothing; what was not yielded waits.
    """
    for folder in folders:
        pushed = Pushed(folder)
        try:
            if spool.is_live(folder):
                raise UsageError("it is still being measured")
            state = progress(folder) | {state_key(store.config): _size(folder)}
            for batch in _batches(folder):
                pushed.problems += [f"{folder.name}: {refused}" for refused in store.write(batch)]
                pushed.points += len(batch)
            text = msgspec.json.format(msgspec.json.encode(state), indent=1)
            spool.write_whole(folder / STATE, text + b"\n")
        except (UsageError, FileNotFoundError) as error:
            pushed.problems.append(f"{folder.name}: is not sent: {error}")
        yield pushed


def _batches(folder: Path) -> Iterator[list[str]]:
    """The lines of each record, and at last the run's: who finds it finds its figures."""
    run = RunLines(spool.read_run(folder))
    batch: list[str] = []
    size = 0
    for record in spool.read_records(folder):
        for line in run.of(record):
            batch.append(line)
            size += len(line)
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    yield [*batch, run.run()]


def end(folder: Path, config: Config | None = None, within_s: float = 20.0) -> str:
    """Send a run that has ended, if InfluxDB is configured, then others beside it that wait, for about so
    long; returns how it went, a sentence, or "".
    """
    until = time.monotonic() + within_s
    try:
        if (bucket := config or load()) is None:
            return ""
        with Store(bucket, within_s) as store:
            (own,) = push(store, [folder])
            for older in waiting(folder.parent, bucket):
                # A damaged run is `evmperf push`'s to complain about.
                if time.monotonic() < until:
                    list(push(store, [older]))
    except EvmperfError as error:
        return f"{error}. Nothing is lost: `evmperf push` or the next run sends the waiting points."
    sent = f"InfluxDB {bucket.url}: {counted(own.points, 'point')} sent"
    return "; ".join([sent, *own.problems]) + "."
