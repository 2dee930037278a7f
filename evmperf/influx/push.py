"""Sending runs: what is on the disk and not yet in the database, as often as one likes."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from evmperf.influx.client import Store
from evmperf.influx.lines import Lines, Totals
from evmperf.model.errors import LabError
from evmperf.runs import spool

_BATCH_LINES = 5000
"""Points in one request: InfluxData's advice for good throughput."""

STATE = "influx.json"
"""File in a run's folder: what was sent where. Without it everything is sent again."""

REFUSED = "influx-refused.txt"
"""File in a run's folder: points that the server will not have, each behind its reason."""


@dataclass
class PushProgress:
    """How far a run is in a bucket: bytes of results.jsonl, and whether its own point is there."""

    folder: Path
    key: str
    offset: int = 0
    complete: bool = False

    @classmethod
    def of(cls, folder: Path, key: str) -> PushProgress:
        """What the state file says; nothing sent where there is none or a damaged one."""
        state = _state(folder).get(key, _Sent())
        return cls(folder, key, state.bytes, state.complete)

    @property
    def begun(self) -> bool:
        """Whether somebody wanted this run in that bucket before."""
        return self.key in _state(self.folder)

    def save(self) -> None:
        """Keep it; a reader sees the old file or the new one."""
        state = _state(self.folder)
        state[self.key] = _Sent(self.offset, self.complete)
        # A session and `evmperf push` may be at it at the same time.
        scratch = self.folder / f"{STATE}.{os.getpid()}.{threading.get_ident()}"
        try:
            scratch.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
            scratch.replace(self.folder / STATE)
        except OSError as error:
            raise LabError(
                f"{self.folder / STATE}: cannot be written ({error.strerror}); the same "
                f"points will be sent again, without effect"
            ) from error


class _Sent(msgspec.Struct):
    bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    complete: bool = False


def _state(folder: Path) -> dict[str, _Sent]:
    with contextlib.suppress(OSError, ValueError, msgspec.DecodeError, RecursionError):
        return msgspec.json.decode((folder / STATE).read_bytes(), type=dict[str, _Sent])
    return {}


@dataclass
class Pushed:
    """Outcome of sending: points sent, points refused, and whether the run is there whole."""

    points: int = 0
    refused: int = 0
    complete: bool = False


@dataclass
class RunPush:
    """Sends one run into one bucket, from where it stands, again and again while it grows."""

    store: Store
    folder: Path
    progress: PushProgress
    totals: Totals = field(default_factory=Totals)
    _counted: int = 0

    @classmethod
    def of(cls, store: Store, folder: Path, *, again: bool = False) -> RunPush:
        """Go on where an earlier call stopped, or send everything `again`."""
        key = store.config.key
        progress = PushProgress(folder, key) if again else PushProgress.of(folder, key)
        return cls(store, folder, progress)

    def send(self) -> Pushed:
        """Send what is new; raises StoreError when the server takes nothing. Tags cannot change later, so a
        run at work waits until its release and system are known.
        """
        live = spool.is_live(self.folder)
        run = spool.read_run(self.folder)
        ended = bool(run.ended_ns) or not live
        pushed = Pushed()
        if not ended and not run.os:
            return pushed
        lines = Lines(run)
        with ThreadPoolExecutor(1) as poster:
            waiting = None
            # While one batch is on its way, the next is made.
            for batch, offset in itertools.chain(self._batches(lines), [([], -1)]):
                if waiting:
                    self._done(*waiting, pushed)
                waiting = (poster.submit(self.store.write, batch), batch, offset) if batch else None
        if ended:
            # Who finds the run finds its figures.
            refused = self.store.write([lines.run(self.totals)])
            pushed.points += 1 - len(refused)
            self._note_refused(refused, pushed)
            pushed.complete = self.progress.complete = True
            self.progress.save()
        return pushed

    def _done(self, future: Any, batch: list[str], offset: int, pushed: Pushed) -> None:
        refused = future.result()
        pushed.points += len(batch) - len(refused)
        self._note_refused(refused, pushed)
        self.progress.offset = max(self.progress.offset, offset)
        self.progress.save()

    def _batches(self, lines: Lines) -> Iterator[tuple[list[str], int]]:
        """Batches of lines, each with the byte of results.jsonl that is reached with it."""
        batch: list[str] = []
        reached = self.progress.offset
        # What was read but not taken by the server is read again, and counted once.
        begin = min(self._counted, self.progress.offset)
        for offset, record in spool.records_from(self.folder, begin):
            if offset > self._counted:
                self.totals.add(record)
                self._counted = offset
            if offset <= self.progress.offset:
                continue
            # A record of many points may fill several batches; it is through with its last.
            for line in lines.of(record):
                batch.append(line)
                if len(batch) >= _BATCH_LINES:
                    yield batch, reached
                    batch = []
            reached = offset
        if batch:
            yield batch, reached

    def _note_refused(self, refused: Iterable[tuple[str, str]], pushed: Pushed) -> None:
        for line, reason in refused:
            pushed.refused += 1
            with (self.folder / REFUSED).open("a", encoding="utf-8") as file:
                file.write(f"# {reason}\n{line}\n")
