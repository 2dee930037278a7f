"""Where a store lies: a folder (a disk, NFS), or an object store by URL.

Files have names like `v1/lab=L/board=B/year=Y/NAME.parquet`, are written once, show whole or not at
all, and are never changed.
"""

import contextlib
import re
import secrets
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from evmperf.measure.runs.spool import sync
from evmperf.model.concealing import concealed
from evmperf.model.errors import LabError, UsageError
from evmperf.model.run import Run

LAYOUT = 1
_SCRATCH = ".new-"
_DAY_S = 86400
_NAME_BYTES = 255
"""Of a name, in most file systems."""


def partition(run: Run) -> str:
    """The folder of a run; raises UsageError for names that are too long for one."""
    year = time.gmtime(run.started_ns / 1e9).tm_year
    return f"v{LAYOUT}/{_part('lab', run.lab)}/{_part('board', run.board)}/year={year}"


def pattern(lab: str | None, board: str | None) -> str:
    """What the files of a lab and a board match; None stands for all."""
    parts = (f"{k}=*" if v is None else _part(k, v) for k, v in (("lab", lab), ("board", board)))
    return f"v{LAYOUT}/{'/'.join(parts)}/year=*/*.parquet"


_NAME = re.compile(r"(?:one-\d{20}-[0-9a-f]{32}|some-\d{20}-\d{6}-[0-9a-f]{16})(?:-([0-9a-f]{8}))?\.parquet")
"""The kind of a file, when it was made (ns since the epoch), which one, and its sum (see `named`)."""


def named(stem: str, where: str, scratch: Path) -> str:
    """The name of a file of that kind in a partition, with the CRC-32 of partition and content: of a
    flipped bit, and of a file that was put elsewhere.
    """
    return f"{where}/{stem}-{_sum(where, scratch):08x}.parquet"


def _sum(where: str, file: Path) -> int:
    crc = zlib.crc32(where.encode())
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return crc


def _part(name: str, value: str) -> str:
    part = f"{name}={quote(value, safe='')}"
    if len(part) > _NAME_BYTES:
        raise UsageError(f"{value[:60]!r}... is too long for the name of a {name} in the store")
    return part


@dataclass(frozen=True)
class StoreFolder:
    """A store in a folder."""

    root: Path

    def __str__(self) -> str:
        return f"{self.root}/"

    def files(self, pattern: str) -> list[str]:
        """The names of the files that match, sorted; raises LabError."""
        with self.errors():
            later = [p.name for p in self.root.glob("v[0-9]*") if p.name != f"v{LAYOUT}"]
            if later:
                raise UsageError(f"{self.root}: has layout {later[0]}: update evmperf")
            paths = self.root.glob(pattern)
            return sorted(str(p.relative_to(self.root)) for p in paths if p.name[0] != ".")

    def address(self, name: str) -> str:
        """What DuckDB reads a file by."""
        return str(self.root / name)

    def flaw(self, name: str) -> str:
        """Why a file is none of the store's, as far as its name tells; "" for a good one."""
        where, _, file = name.rpartition("/")
        if not (form := _NAME.fullmatch(file)):
            return "is no file of the store"
        with self.errors():
            if form[1] and int(form[1], 16) != _sum(where, self.root / name):
                return "is damaged, or belongs to another folder"
        return ""

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A local file to write to, gone at the end; those of writers that were killed go after a day."""
        with self.errors():
            self.root.mkdir(parents=True, exist_ok=True)
            for old in self.root.glob(f"{_SCRATCH}*"):
                with contextlib.suppress(FileNotFoundError):
                    if old.stat().st_mtime < time.time() - _DAY_S:
                        old.unlink()
            file = self.root / f"{_SCRATCH}{secrets.token_hex(8)}"
            file.touch(exist_ok=False)
        try:
            yield file
        finally:
            file.unlink(missing_ok=True)

    def put(self, scratch: Path, name: str) -> None:
        """Make that file one of the tree, safely; raises LabError."""
        target = self.root / name
        with self.errors():
            target.parent.mkdir(parents=True, exist_ok=True)
            sync(scratch)
            scratch.replace(target)
            sync(target.parent)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; raises LabError."""
        with self.errors():
            (self.root / name).unlink(missing_ok=True)

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let a connection read the files."""

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Say what is wrong as LabError."""
        try:
            yield
        except OSError as error:
            raise _unusable(str(self.root), error.strerror or str(error)) from error


class Bucket:
    """A store in an object store, by a URL that fsspec knows (`s3://bucket/prefix`)."""

    def __init__(self, url: str) -> None:
        try:
            import fsspec  # noqa: PLC0415  # an extra

            self._system: Any
            self._system, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise UsageError(f"{url}: {error}; pip install 'evmperf[objects]'") from error
        self.url = url.rstrip("/")

    def __str__(self) -> str:
        return concealed(self.url)

    def files(self, pattern: str) -> list[str]:
        """See StoreFolder."""
        with self.errors():
            # What other writers have put there since the last time is looked for anew.
            self._system.invalidate_cache()
            names = self._system.glob(f"{self._root}/{pattern}")
        return sorted(str(name)[len(self._root) :].lstrip("/") for name in names)

    def address(self, name: str) -> str:
        """See StoreFolder."""
        return f"{self.url}/{name}"

    def flaw(self, name: str) -> str:
        """See StoreFolder. Object stores keep sums of their own."""
        return "" if _NAME.fullmatch(name.rpartition("/")[2]) else "is no file of the store"

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """See StoreFolder."""
        with tempfile.TemporaryDirectory(prefix="evmperf-store-") as folder:
            yield Path(folder) / "new.parquet"

    def put(self, scratch: Path, name: str) -> None:
        """See StoreFolder. An object shows when it is whole."""
        with self.errors():
            self._system.put_file(str(scratch), f"{self._root}/{name}")

    def remove(self, name: str) -> None:
        """See StoreFolder."""
        with self.errors(), contextlib.suppress(FileNotFoundError):
            self._system.rm_file(f"{self._root}/{name}")

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """See StoreFolder."""
        connection.register_filesystem(self._system)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Say what is wrong as LabError."""
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:  # each object store has errors of its own
            raise _unusable(self.url, f"{type(error).__name__}: {error}") from error


StorePlace = StoreFolder | Bucket
"""A tree of files."""


def _unusable(where: str, why: str) -> LabError:
    return LabError(
        f"{where}: the history cannot be kept or read there: {why}; name another folder with EVMPERF_HISTORY"
    )
