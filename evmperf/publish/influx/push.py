"""Sending runs: what is on the disk and not yet in the database, as often as one likes; no run at work, as no
measurement waits for a server or shares the network with one.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from evmperf.measure.runs import spool
from evmperf.model import limits
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.units import counted
from evmperf.publish.influx import config as configs
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.config import Config
from evmperf.publish.influx.lines import SCHEMA, RunLines

_BATCH_LINES = 5000
"""Points in one request: InfluxData's advice for good throughput."""
_BATCH_BYTES = 900_000
"""What proxies let through as they come: 1 MB (nginx)."""

STATE = "influx.json"
"""File in a run's folder: what was sent where. Without it everything is sent again."""


class PushProgress(msgspec.Struct):
    """How much of a run is in a bucket: bytes of its results and verdicts; begun, if not `complete`."""

    results: limits.Count = 0
    verdicts: limits.Count = 0
    complete: bool = False

    def save(self, folder: Path, key: str) -> None:
        """Keep it as that of a bucket; a reader sees the old file or the new one. Raises LabError."""
        text = msgspec.json.encode(progress(folder) | {key: self})
        spool.write_whole(folder / STATE, msgspec.json.format(text, indent=1) + b"\n", sync=False)


def state_key(config: Config) -> str:
    """What a bucket is called in a run's state: after a change of what is stored everything is sent again."""
    return f"{config.key}|{SCHEMA}"


def progress(folder: Path) -> dict[str, PushProgress]:
    """How far a run is, by bucket; {} without a state, and for a damaged one."""
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=dict[str, PushProgress])
    return {}


def waiting(results: Path, config: Config, *, begun: bool = False) -> list[Path]:
    """Runs that are not whole in a bucket, oldest first; with `begun`, only begun ones."""
    folders = []
    for path in results.glob("*/run.json"):
        sent = progress(path.parent).get(state_key(config))
        if (not begun) if sent is None else sent != _on_disk(path.parent):
            folders.append(path.parent)
    return sorted(folders, key=lambda folder: (folder / "run.json").stat().st_mtime)


def _on_disk(folder: Path) -> PushProgress:
    results, verdicts = (file.stat().st_size if file.exists() else 0 for file in _files(folder))
    return PushProgress(results, verdicts, complete=True)


def _files(folder: Path) -> Iterable[Path]:
    return folder / spool.RECORDS, folder / spool.VERDICTS


@dataclass
class Pushed:
    """A run that the server has: so many points, why it has none, and points that it refused since the run
    before, by the reason.
    """

    folder: Path
    points: int = 0
    problem: str = ""
    refused: Counter[str] = field(default_factory=Counter)


def told(all_pushed: Iterable[Pushed]) -> list[str]:
    """What went wrong with some runs: a sentence for each run and each reason."""
    problems, refused = [], Counter[str]()
    for pushed in all_pushed:
        problems += [pushed.problem] if pushed.problem else []
        refused += pushed.refused
    return problems + [f"{counted(n, 'point')} refused: {why}" for why, n in refused.items()]


def push(store: Store, folders: Iterable[Path], *, again: bool = False) -> Iterator[Pushed]:
    """Send what is new of some runs, or all of them `again`; yields each run when the server has it, or why
    it is left out: a damaged one or one at work stops no other. Raises StoreError when the server takes
    nothing; what was not yielded waits.
    """
    under_way: _Batch | None = None
    refused: Counter[str] = Counter()
    for batch in itertools.chain(_batches(store, folders, again=again), [None]):
        if under_way:
            refused += store.finish(under_way.answer) if under_way.answer else Counter()
            for pushed, reached in under_way.ended:
                pushed.refused, refused = refused, Counter()
                if reached:
                    reached.save(pushed.folder, state_key(store.config))
                yield pushed
        if batch and batch.lines:
            # The next batch is made while the server takes this one.
            batch.answer = store.start(batch.lines)
        under_way = batch


@dataclass
class _Batch:
    """Lines of several runs, those runs that end in it, and how far they are then."""

    lines: list[str] = field(default_factory=list)
    size: int = 0
    ended: list[tuple[Pushed, PushProgress | None]] = field(default_factory=list)
    answer: Future[Counter[str]] | None = None


def _batches(store: Store, folders: Iterable[Path], *, again: bool) -> Iterator[_Batch]:
    batch = _Batch()
    for folder in folders:
        pushed, reached = Pushed(folder), None
        try:
            if spool.is_live(folder):
                raise UsageError("it is still being measured")
            reached = _on_disk(folder)
            sent = None if again else progress(folder).get(state_key(store.config))
            for line in itertools.chain.from_iterable(_lines(folder, sent or PushProgress())):
                if len(batch.lines) >= _BATCH_LINES or batch.size >= _BATCH_BYTES:
                    yield batch
                    batch = _Batch()
                batch.lines.append(line)
                batch.size += len(line)
                pushed.points += 1
        except (UsageError, FileNotFoundError) as error:
            pushed.problem, reached = f"{folder.name}: is not sent: {error}", None
        batch.ended.append((pushed, reached))
    yield batch


def _lines(folder: Path, sent: PushProgress) -> Iterator[list[str]]:
    """The lines of each record that was not sent, and at last the run's: who finds it finds its figures."""
    lines = RunLines(spool.read_run(folder))
    for file, done in zip(_files(folder), (sent.results, sent.verdicts), strict=True):
        for offset, record in spool.records_from(folder, 0, file.name):
            lines.count(record)
            if offset > done:
                yield lines.of(record)
    yield [lines.run()]


def send_if_named(folder: Path) -> str:
    """Send the news of an ended run, if InfluxDB is configured; returns what went wrong, or ""."""
    try:
        named = configs.load()
        if named is None:
            return ""
        with Store(named) as store:
            return "; ".join(told(push(store, [folder])))
    except EvmperfError as error:
        return str(error)


def begin(config: Config, folder: Path) -> None:
    """Have a run that is killed sent by the end of a later one. Raises LabError."""
    key = state_key(config)
    (progress(folder).get(key) or PushProgress()).save(folder, key)


def end(config: Config, folder: Path, within_s: float) -> str:
    """Send a run that has ended, then earlier ones that began here and wait, for about so long; returns how
    it went, a sentence.
    """
    until = time.monotonic() + within_s
    try:
        with Store(config, within_s, patience_s=within_s / 4) as store:
            own = list(push(store, [folder]))
            for older in waiting(folder.parent, config, begun=True):
                # A damaged run is `evmperf push`'s to complain about.
                if time.monotonic() < until:
                    list(push(store, [older]))
    except EvmperfError as error:
        return f"{error}. Nothing is lost: `evmperf push` or the next run sends the waiting points."
    return "; ".join([f"InfluxDB {config.url}: {sum(p.points for p in own)} points sent", *told(own)]) + "."
