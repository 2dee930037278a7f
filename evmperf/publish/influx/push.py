"""Sending runs: those that are on the disk and not whole in the database, as often as one likes; no run at
work, as no measurement waits for a server or shares the network with one.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
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

_UNDER_WAY = 2
"""Requests that the server has at most: it reads one while it stores the other."""

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


def _save(config: Config, folder: Path, sent: int) -> None:
    """Keep how far a run is in a bucket; a reader sees the old file or the new one. Raises LabError."""
    text = msgspec.json.encode(progress(folder) | {state_key(config): sent})
    spool.write_whole(folder / STATE, msgspec.json.format(text, indent=1) + b"\n")


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
    """A run that the server has: so many points, why it has none, and points that it refused since the run
    before, by the reason; `sent` bytes of its files are in them.
    """

    folder: Path
    points: int = 0
    problem: str = ""
    refused: Counter[str] = field(default_factory=Counter)
    sent: int = field(default=0, compare=False)


def told(all_pushed: Iterable[Pushed]) -> list[str]:
    """What went wrong with some runs: a sentence for each run and each reason."""
    problems, refused = [], Counter[str]()
    for pushed in all_pushed:
        problems += [pushed.problem] if pushed.problem else []
        refused += pushed.refused
    return problems + [f"{counted(n, 'point')} refused: {why}" for why, n in refused.items()]


def push(store: Store, folders: Iterable[Path]) -> Iterator[Pushed]:
    """Send whole runs; yields each run when the server has it, or why it is left out: a damaged one or one at
    work stops no other. Raises StoreError when the server takes nothing; what was not yielded waits.
    """
    under_way: deque[tuple[Future[Counter[str]] | None, list[Pushed]]] = deque()
    refused: Counter[str] = Counter()
    # A batch is made while the server takes the two before; at last there is none.
    for lines, ended in _batches(folders):
        # Who finds a run's own line finds its figures: all before it have arrived.
        while under_way and (len(under_way) == _UNDER_WAY or ended or not lines):
            answer, arrived = under_way.popleft()
            refused += store.finish(answer) if answer else Counter()
            for pushed in arrived:
                pushed.refused, refused = refused, Counter()
                if not pushed.problem:
                    _save(store.config, pushed.folder, pushed.sent)
                yield pushed
        under_way.append((store.start(lines) if lines else None, ended))


def _batches(folders: Iterable[Path]) -> Iterator[tuple[list[str], list[Pushed]]]:
    """Lines of several runs for one request, and the runs that end in it; at last none of both."""
    lines: list[str] = []
    size, ended = 0, list[Pushed]()
    for folder in folders:
        pushed = Pushed(folder)
        try:
            if spool.is_live(folder):
                raise UsageError("it is still being measured")
            pushed.sent = _size(folder)
            for line in _lines(folder):
                if size >= _BATCH_BYTES:
                    yield lines, ended
                    lines, size, ended = [], 0, []
                lines.append(line)
                size += len(line)
                pushed.points += 1
        except (UsageError, FileNotFoundError) as error:
            pushed.problem = f"{folder.name}: is not sent: {error}"
        ended.append(pushed)
    yield from ((lines, ended), ([], []))


def _lines(folder: Path) -> Iterator[str]:
    """The lines of each record, and at last the run's: who finds it finds its figures."""
    lines = RunLines(spool.read_run(folder))
    for record in spool.read_records(folder):
        yield from lines.of(record)
    yield lines.run()


def send_if_named(folder: Path) -> str:
    """Send an ended run, if InfluxDB is configured; returns what went wrong, or ""."""
    try:
        named = load()
        if named is None:
            return ""
        with Store(named) as store:
            return "; ".join(told(push(store, [folder])))
    except EvmperfError as error:
        return str(error)


def end(config: Config, folder: Path, within_s: float) -> str:
    """Send a run that has ended, then others beside it that wait, for about so long; returns how it went, a
    sentence.
    """
    until = time.monotonic() + within_s
    try:
        with Store(config, within_s, patience_s=int(within_s / 4)) as store:
            own = list(push(store, [folder]))
            for older in waiting(folder.parent, config):
                # A damaged run is `evmperf push`'s to complain about.
                if time.monotonic() < until:
                    list(push(store, [older]))
    except EvmperfError as error:
        return f"{error}. Nothing is lost: `evmperf push` or the next run sends the waiting points."
    return "; ".join([f"InfluxDB {config.url}: {sum(p.points for p in own)} points sent", *told(own)]) + "."
