"""Sending runs: what is on the disk and not yet in the database, as often as one likes; a run that is
measured in a thread of its own, so that no measurement ever waits for a server.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

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
_RETRY_S = 30.0
"""How long a server that failed is left alone during a run."""

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
    found = []
    for path in results.glob("*/run.json"):
        sent = progress(path.parent).get(key)
        behind = sent is not None and (
            sent.offset < _size(path.parent / spool.RECORDS)
            or sent.verdicts < _size(path.parent / spool.VERDICTS)
        )
        if (not begun) if sent is None else (not sent.complete or behind):
            found.append(path.parent)
    return sorted(found, key=lambda folder: (folder / "run.json").stat().st_mtime)


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


@dataclass
class RunPush:
    """Sends one run into one bucket while it grows: points sent, points refused, and if it is complete."""

    store: Store
    folder: Path
    progress: PushProgress
    points: int = 0
    refused: int = 0
    complete: bool = False
    _totals: Totals = field(default_factory=Totals)
    _counted: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, folder: Path, *, again: bool = False) -> RunPush:
        """Go on where an earlier call stopped, or send everything `again`."""
        there = {} if again else progress(folder)
        return cls(store, folder, there.get(store.config.key) or PushProgress())

    @property
    def problem(self) -> str:
        """That the server would not have some points, a sentence; "" for none."""
        if not self.refused:
            return ""
        return f"{self.folder / REFUSED}: {self.refused} points were refused by the server; the file says why"

    def send(self) -> RunPush:
        """Send what is new; raises StoreError when the server takes nothing. Tags cannot change later, so a
        run at work waits until its release and system are known.
        """
        live = spool.is_live(self.folder)
        run = spool.read_run(self.folder)
        ended = bool(run.ended_ns) or not live
        if not ended and not run.os:
            return self
        lines = Lines(run)
        with ThreadPoolExecutor(1) as poster:
            posted = None
            # While one batch is on its way, the next is made.
            for batch, reached in itertools.chain(self._batches(lines), [([], PushProgress())]):
                if posted:
                    self._done(*posted)
                posted = (poster.submit(self.store.write, batch), batch, reached) if batch else None
        if ended:
            # Who finds the run finds its figures.
            own = [lines.run(self._totals)]
            self._count(own, self.store.write(own))
            self.complete = self.progress.complete = True
            self.progress.save(self.folder, self.store.config.key)
        return self

    def _done(self, future: Any, batch: list[str], reached: PushProgress) -> None:
        self._count(batch, future.result())
        self.progress.offset, self.progress.verdicts = reached.offset, reached.verdicts
        self.progress.save(self.folder, self.store.config.key)

    def _batches(self, lines: Lines) -> Iterator[tuple[list[str], PushProgress]]:
        """Batches of lines, each with how far the run is with it."""
        batch: list[str] = []
        reached = replace(self.progress)
        for name, at in ((spool.RECORDS, "offset"), (spool.VERDICTS, "verdicts")):
            sent, counted = getattr(self.progress, at), self._counted.get(name, 0)
            # What was read but not taken by the server is read again, and counted once.
            for offset, record in spool.records_from(self.folder, min(counted, sent), name):
                if offset > counted:
                    self._totals.add(record)
                    self._counted[name] = offset
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


class Sender:
    """Sends one run while it is measured, after earlier runs' waiting points, in a thread that reads the
    disk: a failing server costs a retry, and the run nothing.
    """

    def __init__(self, config: Config, folder: Path, timeout_s: float = 20.0) -> None:
        self.problem = ""
        """Why the last attempt failed, "" when it did not."""
        self._config = config
        self._folder = folder
        self._timeout_s = timeout_s
        self._live: RunPush | None = None
        self._something_new = threading.Event()
        self._ending = threading.Event()
        self._ended = threading.Event()
        (progress(folder).get(config.key) or PushProgress()).save(folder, config.key)
        threading.Thread(target=self._work, name="influx", daemon=True).start()

    def wake(self) -> None:
        """Something more is on the disk; returns at once."""
        self._something_new.set()

    def finish(self, wait_s: float) -> str:
        """The run has ended: send the rest for at most so long; returns how it went, a sentence."""
        self._ending.set()
        self._something_new.set()
        self._ended.wait(wait_s)
        where = f"InfluxDB {self._config.url}"
        if (live := self._live) and live.complete:
            refused = f", {live.refused} refused" if live.refused else ""
            return f"{where}: {live.points} points sent{refused}."
        undone = "nothing to send" if self._ended.is_set() else f"still sending after {wait_s:g} s"
        cause = self.problem or f"{where}: {undone}"
        return f"{cause}. Nothing is lost: `evmperf push` or the next run sends the waiting points."

    def _work(self) -> None:
        try:
            with Store(self._config, self._timeout_s) as store:
                live = self._live = RunPush.of(store, self._folder)
                older_sent = False
                while not live.complete:
                    self._something_new.wait()
                    self._something_new.clear()
                    last = self._ending.is_set()
                    try:
                        if not older_sent:
                            self._send_older(store)
                            older_sent = True
                        live.send()
                        self.problem = ""
                    except EvmperfError as error:
                        self.problem = str(error)
                        # Lets `finish` through at once, and what is new meanwhile wait.
                        self._ending.wait(_RETRY_S)
                        self._something_new.set()
                    if last:
                        return
        finally:
            self._ended.set()

    def _send_older(self, store: Store) -> None:
        for folder in waiting(self._folder.parent, store.config.key, begun=True):
            if folder != self._folder and not spool.is_live(folder):
                # A damaged run is `evmperf push`'s to complain about.
                with contextlib.suppress(UsageError, FileNotFoundError):
                    RunPush.of(store, folder).send()
