"""The spool: a run on disk, the truth from which every table, database and guide is fed.

    results/<run>/run.json       the run and its facts, replaced atomically
    results/<run>/results.jsonl  one record a line, appended and fsynced: results and boots
    results/<run>/verdicts.jsonl what judging said of them
    results/<run>/raw/...        raw outputs
    results/<run>/console.log    every byte of the console and its time: evmperf.boards.console.record

Records carry the schema's number (`evmperf.model.results`); readers never guess.
"""

import contextlib
import errno
import fcntl
import functools
import json
import logging
import operator
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import BinaryIO

import msgspec

from evmperf.model import limits, outlets
from evmperf.model.concealing import known, without_known
from evmperf.model.errors import LabError, RefusedOutput, UsageError
from evmperf.model.figures import Key
from evmperf.model.places import is_plain
from evmperf.model.records import KINDS, VerdictRecord
from evmperf.model.results import SCHEMA, Header, Result, SpoolRecord, as_rows
from evmperf.model.run import Run

CONSOLE_LOG = "console.log"
"""The console's record in a run's folder."""
RECORDS = "results.jsonl"
"""The file of a run's records."""
VERDICTS = "verdicts.jsonl"
"""What judging said after the run. Runs until 0.2 have it among their records."""

_SMALL = 4 << 20
"""Bytes of a file of records that is kept when it was read; a larger one is read line by line."""
_RUNS = 4096
"""Files run.json that are kept: some kilobytes each."""
_NAMED = 5
"""Damaged lines of a file that are named, one by one."""
_ALONE_S = 30.0
"""How long another process may take to append; it does nothing but write and sync."""


def _plain(value: object) -> object:
    """What a fact or condition of no type of ours is on the disk."""
    return dict(value) if isinstance(value, Mapping) else str(value)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
_RUN = msgspec.json.Encoder(enc_hook=_plain, order="sorted")
_HEADER = msgspec.json.Decoder(Header)
_RECORD: msgspec.json.Decoder[SpoolRecord] = msgspec.json.Decoder(functools.reduce(operator.or_, KINDS))
_BEGIN = f'{{"schema":{SCHEMA},'.encode()
_log = logging.getLogger(__name__)


class Damaged(UsageError):
    """What a file says is nothing that evmperf has written."""


class Spool:
    """The folder of one run, appended to record by record; raises LabError, or UsageError for a bad id."""

    def __init__(self, results: Path, run: Run) -> None:
        if not is_plain(run.id):
            raise UsageError(f"{run.id!r} names no folder: name the board with letters, digits, . and -")
        self.folder = results / run.id
        self.run = run
        with _writing(self.folder, _FREE):
            (self.folder / "raw").mkdir(parents=True)
        self._held: BinaryIO | None = None
        sync(results)
        self.save()

    def hold(self) -> None:
        """Hold this run as its measurer until the end of this process; see `is_live`."""
        with _writing(self.folder, _FREE):
            self._held = (self.folder / RECORDS).open("ab")
            # Nobody else holds a new run: this waits for no more than who asks `is_live`.
            fcntl.flock(self._held, fcntl.LOCK_EX)

    def release(self) -> None:
        """Be known as that no more."""
        if self._held:
            self._held.close()
            self._held = None

    @contextlib.contextmanager
    def _unmoved(self) -> Iterator[Path]:
        """The folder to write to. Raises LabError where it was deleted since `hold`, and after the writing
        where it was renamed: a folder made anew would have half a run.
        """
        place = self.folder
        if self._held and not self._is_here(self._held):
            place = Path(f"/proc/self/fd/{self._held.fileno()}").readlink().parent
            if not self._is_here(self._held, place):
                raise LabError(f"{self.folder}: the session's records were deleted while it measured")
        yield place
        if place is not self.folder:
            raise LabError(
                f"{self.folder}: was renamed to {place} while the session measured; its results are there"
            )

    def _is_here(self, held: BinaryIO, folder: Path | None = None) -> bool:
        with contextlib.suppress(OSError):
            return os.path.samestat(((folder or self.folder) / RECORDS).stat(), os.fstat(held.fileno()))
        return False

    def save(self) -> None:
        """Write run.json, so that a reader sees the old one or the new one and nothing between."""
        text = msgspec.json.format(_encoded(_RUN, self.run.to_dict()), indent=1)
        with self._unmoved() as folder, _writing(folder, _FREE):
            _replace(folder / "run.json", text + b"\n")

    def append(self, *records: SpoolRecord) -> None:
        """Append records as one write and wait until they are on the disk; all or nothing."""
        with self._unmoved() as folder:
            append_records(folder, records)

    def keep_raw(self, name: str, text: str) -> str:
        """Keep a raw output; returns its name. Raises RefusedOutput for a name outside `raw/`."""
        path = self.folder / "raw" / name
        if not (
            all(map(is_plain, name.split("/")))
            and path.resolve().is_relative_to(self.folder.resolve() / "raw")  # no link leads away
        ):
            raise RefusedOutput(f"{name[:200]!r} is not a file name: raw output not kept", text)
        with self._unmoved() as folder, _writing(folder, _FREE):
            kept = folder / "raw" / name
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(without_known(text), encoding="utf-8")
        return f"raw/{name}"


def sync(path: Path) -> None:
    """Wait until a file or a folder's entries are on the disk; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_records(folder: Path, records: Iterable[SpoolRecord], name: str = RECORDS) -> None:
    """Append records to a file of a run as one write and wait until they are on the disk.

    All or nothing: raises LabError when the disk does not take them. What a crash has left of a
    last line stays a line of its own.
    """
    lines = b"".join(map(line, records))
    with _writing(folder, _FREE), _alone(folder), (folder / name).open("a+b", buffering=0) as file:
        _append(file, lines)


def _append(file: FileIO, lines: bytes) -> None:
    """Append whole lines to a file that nobody else writes meanwhile; all or nothing. Raises OSError."""
    good = file.seek(0, os.SEEK_END)
    if good and os.pread(file.fileno(), 1, good - 1) != b"\n":
        lines = b"\n" + lines
    try:
        if file.write(lines) != len(lines):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())
    except OSError:
        file.truncate(good)
        raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only one that appends to a run; raises OSError when another takes too long."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    deadline = time.monotonic() + _ALONE_S
    try:
        while True:
            try:
                # The records' own lock is that of who measures the run.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except OSError:
                break  # a network file system that locks no folders
            else:
                break
        yield
    finally:
        os.close(handle)


_FREE = ": free some space or name another folder with --results=FOLDER; the results until now are safe"


@contextlib.contextmanager
def _writing(place: Path, remedy: str = ": free some space there, or name another place") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LabError(f"{place}: cannot be written ({error.strerror}){remedy}") from error


def write_whole(target: Path, data: bytes) -> None:
    """Write a file, so that a reader sees the old one or the new one and nothing between; it is on the disk
    then. Raises LabError.
    """
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data)


def _replace(target: Path, data: bytes) -> None:
    scratch = target.with_name(f".{target.name}.new")
    with scratch.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(target)


def line(record: SpoolRecord) -> bytes:
    """The line of a record."""
    return _BEGIN + _encoded(_ENCODER, record)[1:] + b"\n"


def _encoded(encoder: msgspec.json.Encoder, value: SpoolRecord | dict[str, object]) -> bytes:
    try:
        text = encoder.encode(value)
    except UnicodeEncodeError:
        # Half a character, as a tool's JSON may have it: no reason to lose the rest.
        text = json.dumps(msgspec.to_builtins(value, enc_hook=_plain), ensure_ascii=False).encode(
            errors="replace"
        )
    if any(msgspec.json.encode(secret)[1:-1] in text for secret in known()):
        text = encoder.encode(_without_known(msgspec.json.decode(text)))
    return text


def _without_known(value: object) -> object:
    if isinstance(value, dict):
        return {without_known(key): _without_known(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_known(part) for part in value]
    return without_known(value) if isinstance(value, str) else value


@contextlib.contextmanager
def new_folder(results: Path) -> Iterator[Path]:
    """A temporary folder beside the runs, to prepare one in; raises LabError."""
    with _writing(results):
        results.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".new-", dir=results)
    with scratch as path:
        yield Path(path)


def new_run_id(board: str) -> str:
    """An id that sorts by time and is unique across labs: board, UTC time, 4 random hex digits."""
    return f"{board}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


@functools.lru_cache(_RUNS)
def _content(path: Path, changed_ns: int, size: int, number: int) -> bytes:
    return path.read_bytes()


def _version(path: Path) -> tuple[Path, int, int, int]:
    """A file as it is: a command asks for the same run in many places, and reads its files once. Raises
    Damaged for a pipe, whose reader would wait for ever.
    """
    now = path.stat()
    if not stat.S_ISREG(now.st_mode):
        raise Damaged(f"{path}: is damaged: no regular file")
    return path, now.st_mtime_ns, now.st_size, now.st_ino


def read_run(folder: Path) -> Run:
    """Read run.json as of today's schema; raises UsageError for none, or one of a later schema."""
    path = folder / "run.json"
    try:
        version = _version(path)
        if version[2] > limits.RUN_BYTES:
            raise Damaged(f"{path}: is damaged: larger than {limits.mib(limits.RUN_BYTES)}")
        text = _content(*version).decode()
        header(str(path), text)
        run = Run.from_dict(msgspec.json.decode(text, type=dict[str, object]))
    except OSError as error:
        raise UsageError(f"{folder}: holds no run ({path.name}: {error.strerror})") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"{path}: is damaged: {error}") from error
    if not is_plain(run.id):
        raise Damaged(f"{path}: is damaged: {run.id!r} is not a run id")
    run.schema = SCHEMA
    return run


def is_live(folder: Path) -> bool:
    """Whether the process that measures this run is still there."""
    try:
        _version(folder / RECORDS)
        with (folder / RECORDS).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, Damaged):
        return False
    return False


@functools.cache
def leave_out(reason: str) -> None:
    """Say, once, that something damaged is left out of what is read."""
    _log.warning("evmperf: %s: left out", outlets.line(reason))


def read_records(folder: Path) -> Iterator[SpoolRecord]:
    """All whole records of a run, the verdicts last, one result a row; damaged lines are named. Raises
    UsageError for a later evmperf's.
    """
    yield from as_rows(lambda: records_in(folder))
    yield from records_in(folder, VERDICTS)


def read_verdicts(folder: Path) -> dict[Key, VerdictRecord]:
    """The last verdict on each figure."""
    return {record.key: record for record in read_records(folder) if isinstance(record, VerdictRecord)}


def records_in(folder: Path, name: str = RECORDS) -> Iterable[SpoolRecord]:
    """The whole records of one of a run's files."""
    path = folder / name
    if not path.exists():
        return ()
    version = _version(path)
    return _lines(path) if version[2] > _SMALL else _all_lines(*version)


@functools.lru_cache(2)  # a run's records and its verdicts
def _all_lines(path: Path, changed_ns: int, size: int, number: int) -> Sequence[SpoolRecord]:
    return tuple(_lines(path))


def _lines(path: Path) -> Iterator[SpoolRecord]:
    damaged = 0
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            if not text.endswith(b"\n"):
                break
            where = f"{path} line {number}"
            try:
                decoded = text.decode()
                if not text.startswith(_BEGIN):
                    header(where, decoded)
                record = _RECORD.decode(decoded)
            except (Damaged, UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
                damaged += 1
                if damaged <= _NAMED:
                    leave_out(str(error) if isinstance(error, Damaged) else f"{where}: is damaged: {error}")
            else:
                yield record
    if damaged > _NAMED:
        leave_out(f"{path}: is damaged: {damaged - _NAMED} more lines")


def results_in(folder: Path) -> Iterator[Result]:
    """The results of a run, one a row, one by one: there may be more than memory holds."""
    return (record for record in as_rows(lambda: records_in(folder)) if isinstance(record, Result))


def read_results(folder: Path) -> list[Result]:
    """All results of a run."""
    return list(results_in(folder))


def header(where: str, text: str) -> Header:
    """What a line or file says of itself; raises UsageError that begins with `where` when it is
    none of evmperf's, or of a later version.
    """
    try:
        head = _HEADER.decode(text)
    except msgspec.ValidationError:
        head = Header(0)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{where}: is damaged: {error}") from error
    if head.schema < 1:
        raise Damaged(f"{where}: states no schema; it is not an evmperf file")
    if head.schema > SCHEMA:
        raise UsageError(
            f"{where}: has schema {head.schema}, this evmperf reads up to {SCHEMA}: update evmperf"
        )
    return head
