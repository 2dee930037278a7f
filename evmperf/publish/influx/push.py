"""Sending runs: what is on the disk and not yet in the database, as often as one likes; no run at work, as no
measurement waits for a server or shares the network with one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from evmperf.measure.runs import spool
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.publish.influx import config as configs
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.config import Config
from evmperf.publish.influx.lines import Lines, Totals

_BATCH_LINES = 5000
"""Points in one request: InfluxData's advice for good throughput."""

STATE = "influx.json"
"""File in a run's folder: what was sent where. Without it everything is sent again."""

REFUSED = "influx-refused.txt"
"""File in a run's folder: points that the server will not have, each behind its reason."""


class PushProgress(msgspec.Struct):
    """How far a run is in a bucket: bytes of results.jsonl and of verdicts.jsonl, and whether its own point
    is there.
    """

    offset: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(default=0, name="bytes")
    verdicts: Annotated[int, msgspec.Meta(ge=0)] = 0
    complete: bool = False

    def save(self, folder: Path, key: str) -> None:
        """Keep it as that of a bucket; a reader sees the old file or the new one. Raises LabError."""
        # A session and `evmperf push` may be at it at the same time.
        scratch = folder / f"{STATE}.{os.getpid()}.{threading.get_ident()}"
        try:
            text = msgspec.json.encode(progress(folder) | {key: self})
            scratch.write_bytes(msgspec.json.format(text, indent=1) + b"\n")
            scratch.replace(folder / STATE)
        except OSError as error:
            raise LabError(
                f"{folder / STATE}: cannot be written ({error.strerror}); the same "
                f"points will be sent again, without effect"
            ) from error


def progress(folder: Path) -> dict[str, PushProgress]:
    """How far a run is, by bucket; {} without a state, and for a damaged one."""
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=dict[str, PushProgress])
    return {}


def waiting(results: Path, key: str, *, begun: bool) -> list[Path]:
    """Runs that are not whole in the bucket `key`, oldest first; with `begun`, only begun ones."""
    folders = []
    for path in results.glob("*/run.json"):
        sent = progress(path.parent).get(key)
        behind = sent is not None and (
            sent.offset < _size(path.parent / spool.RECORDS)
            or sent.verdicts < _size(path.parent / spool.VERDICTS)
        )
        if (not begun) if sent is None else (not sent.complete or behind):
            folders.append(path.parent)
    return sorted(folders, key=lambda folder: (folder / "run.json").stat().st_mtime)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def send_if_named(folder: Path) -> str:
    """Send the news of an ended run, if InfluxDB is configured; returns the error's sentence, or ""."""
    try:
        named = configs.load()
        if named is None:
            return ""
        with Store(named) as store:
            return RunPush.of(store, folder).send().problem
    except EvmperfError as error:
        return str(error)


def begin(config: Config, folder: Path) -> None:
    """Have a run that is killed sent by the end of a later one. Raises LabError."""
    (progress(folder).get(config.key) or PushProgress()).save(folder, config.key)


def end(config: Config, folder: Path, within_s: float) -> str:
    """Send a run that has ended, then earlier ones that began here and wait, for about so long; returns how
    it went, a sentence.
    """
    until = time.monotonic() + within_s
    try:
        with Store(config, within_s) as store:
            own = RunPush.of(store, folder).send()
            for older in waiting(folder.parent, config.key, begun=True):
                # A damaged run is `evmperf push`'s to complain about.
                with contextlib.suppress(UsageError, FileNotFoundError):
                    if time.monotonic() < until:
                        RunPush.of(store, older).send()
    except EvmperfError as error:
        return f"{error}. Nothing is lost: `evmperf push` or the next run sends the waiting points."
    refused = f", {own.refused} refused" if own.refused else ""
    return f"InfluxDB {config.url}: {own.points} points sent{refused}."


_Sent = tuple[list[str], PushProgress, Future[list[tuple[str, str]]]]
"""A batch that is under way, and how far the run is with it."""


@dataclass
class RunPush:
    """Sends one run into one bucket while it grows: points sent, points refused, and if it is complete."""

    store: Store
    folder: Path
    progress: PushProgress
    points: int = 0
    refused: int = 0
    complete: bool = False

    @classmethod
    def of(cls, store: Store, folder: Path, *, again: bool = False) -> RunPush:
        """Go on where an earlier call stopped, or send everything `again`."""
        earlier = {} if again else progress(folder)
        return cls(store, folder, earlier.get(store.config.key) or PushProgress())

    @property
    def problem(self) -> str:
        """That the server would not have some points, a sentence; "" for none."""
        if not self.refused:
            return ""
        return f"{self.folder / REFUSED}: {self.refused} points were refused by the server; the file says why"

    def send(self) -> RunPush:
        """Send what is new of a run that is not at work; raises StoreError when the server takes nothing."""
        if spool.is_live(self.folder):
            return self
        lines, totals = Lines(spool.read_run(self.folder)), Totals()
        with ThreadPoolExecutor(1) as sender:
            sent: _Sent | None = None
            try:
                # The next batch is made while the server takes this one.
                for batch, reached in self._batches(lines, totals):
                    self._settle(sent)
                    sent = batch, reached, sender.submit(self.store.write, batch)
                self._settle(sent)
            except BaseException:
                self.store.cut()  # Ctrl-C must not wait for a server that hangs
                raise
        # Who finds the run finds its figures.
        own = [lines.run(totals)]
        self._count(own, self.store.write(own))
        self.complete = self.progress.complete = True
        self.progress.save(self.folder, self.store.config.key)
        return self

    def _settle(self, sent: _Sent | None) -> None:
        if sent is None:
            return
        batch, reached, answer = sent
        self._count(batch, answer.result())
        self.progress.offset, self.progress.verdicts = reached.offset, reached.verdicts
        self.progress.save(self.folder, self.store.config.key)

    def _batches(self, lines: Lines, totals: Totals) -> Iterator[tuple[list[str], PushProgress]]:
        """Batches of lines, each with how far the run is with it; counts all records."""
        batch: list[str] = []
        reached = replace(self.progress)
        for name, at in ((spool.RECORDS, "offset"), (spool.VERDICTS, "verdicts")):
            sent = getattr(self.progress, at)
            for offset, record in spool.records_from(self.folder, 0, name):
                totals.add(record)
                if offset <= sent:
                    continue
                # A record of many points may fill several batches; it is through with its last.
                for line in lines.of(record):
                    batch.append(line)
                    if len(batch) >= _BATCH_LINES:
                        yield batch, replace(reached)
                        batch = []
                setattr(reached, at, offset)
        if batch:
            yield batch, reached

    def _count(self, batch: list[str], refused: list[tuple[str, str]]) -> None:
        self.points += len(batch) - len(refused)
        self.refused += len(refused)
        if refused:
            with (self.folder / REFUSED).open("a", encoding="utf-8") as file:
                file.writelines(f"# {reason}\n{line}\n" for line, reason in refused)
