"""The spool: a run on disk, the truth from which every table, database and guide is fed.

    results/<run>/run.json       the run and its facts, replaced atomically
    results/<run>/results.jsonl  one record a line, appended and fsynced: results and boots
    results/<run>/raw/...        raw outputs
    results/<run>/console.log    every byte of the console and its time: evmperf.console.record

Records carry the schema's number; readers upgrade older ones and never guess.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from evmperf.model.errors import Kind, LabError, UsageError
from evmperf.model.results import Failure, Published, Result, Sample, Status
from evmperf.model.run import SCHEMA, Run

RECORDS = "results.jsonl"
"""The file of a run's records."""

_LEFT_OUT: Mapping[str, Any] = {
    "samples": (), "failures": (), "tools": {}, "conditions": {}, "raw": (), "started_ns": 0,
    "duration_s": 0.0, "tool_s": 0.0,
}  # fmt: skip
"""What a result's record stands for where it leaves something out, as imported guides do."""


class Spool:
    """Writes one run. Raises LabError when the disk does not take it; what was written stays."""

    def __init__(self, results: Path, run: Run) -> None:
        self.folder = results / run.id
        self.run = run
        try:
            (self.folder / "raw").mkdir(parents=True)
        except OSError as error:
            raise _full(self.folder, error) from error
        self._held: BinaryIO | None = None
        self.on_change: Callable[[], None] = lambda: None
        """Called when something more is safe on the disk; must return at once."""
        self._sync_folder(results)
        self.save()

    @property
    def console_log(self) -> Path:
        """Where the console's record goes."""
        return self.folder / "console.log"

    def hold(self) -> None:
        """Be known as the one that measures this run, until this process ends however it does;
        see `is_live`.
        """
        try:
            self._held = (self.folder / RECORDS).open("ab")
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _full(self.folder, error) from error

    def release(self) -> None:
        """Be known as that no more."""
        if self._held:
            self._held.close()

    def save(self) -> None:
        """Write run.json, so that a reader sees the old one or the new one and nothing between."""
        text = json.dumps(dataclasses.asdict(self.run), indent=1, sort_keys=True, default=str)
        target = self.folder / "run.json"
        scratch = target.with_suffix(".new")
        try:
            with scratch.open("w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(target)
        except OSError as error:
            raise _full(self.folder, error) from error
        self.on_change()

    def append(self, record: Mapping[str, Any]) -> None:
        """Append one record and wait until it is on the disk; all of it or nothing."""
        self.append_all([record])

    def append_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records as one write and wait until they are on the disk; all or nothing."""
        append_records(self.folder, records)
        self.on_change()

    def append_result(self, result: Result) -> None:
        """Append a result."""
        self.append(result_record(result))

    def keep_raw(self, name: str, text: str) -> str:
        """Keep a raw output; returns its name below the run's folder."""
        path = self.folder / "raw" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _full(self.folder, error) from error
        return str(path.relative_to(self.folder))

    @staticmethod
    def _sync_folder(folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def append_records(folder: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append records to a run as one write and wait until they are on the disk.

    All or nothing: raises LabError when the disk does not take them.
    """
    lines = b"".join(
        json.dumps({"schema": SCHEMA, **record}, default=str).encode() + b"\n" for record in records
    )
    try:
        with (folder / RECORDS).open("ab", buffering=0) as file:
            good = file.tell()
            try:
                written = file.write(lines)
                if written != len(lines):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(good)
                raise
    except OSError as error:
        raise _full(folder, error) from error


def _full(folder: Path, error: OSError) -> LabError:
    return LabError(
        f"{folder}: cannot be written ({error.strerror}): free some space or name "
        f"another folder with --results=FOLDER; what was measured until now is safe"
    )


def result_record(result: Result) -> dict[str, Any]:
    """The record of a result."""
    record = dataclasses.asdict(result)
    for sample in record["samples"]:
        if sample["error"] is None:
            del sample["error"]
    return {"record": "result", **record}


@contextlib.contextmanager
def new_folder(results: Path) -> Iterator[Path]:
    """A folder beside the runs in which one can be prepared unseen; removed at the end.

    Raises LabError when the disk does not take it.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".new-", dir=results)
    except OSError as error:
        raise LabError(f"{results}: cannot be written: {error.strerror}") from error
    with scratch as path:
        yield Path(path)


def new_run_id(board: str) -> str:
    """An id that sorts by time and is unique across labs: board, UTC time, 4 random hex digits."""
    return f"{board}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def read_run(folder: Path) -> Run:
    """Read run.json; raises UsageError when the folder holds no run, or one of a later schema."""
    path = folder / "run.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{folder}: holds no run ({path.name}: {error.strerror})") from error
    except ValueError as error:
        raise UsageError(f"{path}: is damaged: {error}") from error
    _check_schema(str(path), data)
    known = {f.name for f in dataclasses.fields(Run)}
    return Run(**{key: value for key, value in data.items() if key in known})


def is_live(folder: Path) -> bool:
    """Whether the process that measures this run is still there."""
    try:
        with (folder / RECORDS).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def read_records(folder: Path) -> Iterator[dict[str, Any]]:
    """All whole records of a run; a last line cut by a crash is left out.

    Raises UsageError naming the line when one in the middle is damaged.
    """
    return (record for _, record in records_from(folder, 0))


def records_from(folder: Path, offset: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The whole records from a byte of results.jsonl on, each with the byte that follows it."""
    path = folder / RECORDS
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(offset)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            try:
                data = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{path} line {number}: is damaged: {error}") from error
            _check_schema(f"{path} line {number}", data)
            yield offset, {**_LEFT_OUT, **data} if data.get("record") == "result" else data


def read_results(folder: Path) -> list[Result]:
    """All results of a run."""
    return [result(r) for r in read_records(folder) if r.get("record") == "result"]


def result(record: Mapping[str, Any]) -> Result:
    """The result that a record of that kind holds."""
    data = {k: v for k, v in record.items() if k not in ("schema", "record")}
    data["status"] = Status(data["status"])
    data["samples"] = tuple(Sample(**sample) for sample in data.get("samples", ()))
    data["failures"] = tuple(
        Failure(**{**failure, "kind": Kind(failure["kind"])})
        for failure in data.get("failures", ())
    )
    data["raw"] = tuple(data.get("raw", ()))
    data["published"] = tuple(Published(**cell) for cell in data.get("published", ()))
    return Result(**data)


def _check_schema(where: str, data: Any) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or schema < 1:
        raise UsageError(f"{where}: states no schema; it is not an evmperf file")
    if schema > SCHEMA:
        raise UsageError(
            f"{where}: has schema {schema}, this evmperf reads up to {SCHEMA}: update evmperf"
        )
