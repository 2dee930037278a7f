"""The record: every figure of the given published guides with its place, in one file, MessagePack compressed
with Zstandard. It holds nobody's sentences. `python -m selftests.instruments.record` of a checkout writes it.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from backports import zstd

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError
from evmperf.model.places import project
from evmperf.model.results import Published

FILE = project("baselines") / "record.zst"
_MOST = 1 << 28
"""Bytes that a record may unpack to."""


class Value(Published, array_like=True, frozen=True, gc=False):
    """One figure; its line is that in its guide."""


class PublishedCase(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One row of a table of a board, with its columns of words."""

    benchmark: str
    driver: str
    tool: str
    name: str
    values: tuple[Value, ...]
    words: dict[str, str]


_CASES = msgspec.msgpack.Decoder(tuple[PublishedCase, ...])


class Entry(msgspec.Struct, array_like=True, frozen=True, dict=True):
    """The figures of one board in one guide. `board` is its name today, `printed` that in the guide; `date`
    is the guide's (YYYY-MM-DD, "" if it has none), and `dated` whether the release is only known from it.
    Of most entries nobody asks for the `packed` cases.
    """

    board: str
    printed: str
    os: str
    release: str
    date: str
    dated: bool
    guide: str
    sha256: str
    packed: msgspec.Raw

    @functools.cached_property
    def cases(self) -> tuple[PublishedCase, ...]:
        """Its rows; raises UsageError for those of another file than a record."""
        try:
            return _CASES.decode(self.packed)
        except msgspec.MsgspecError as error:
            raise UsageError(f"the record of {self.guide} is damaged: {error}") from error

    @property
    def count(self) -> int:
        """How many figures it has."""
        return sum(len(case.values) for case in self.cases)

    @property
    def place(self) -> tuple[tuple[int, ...], str]:
        """What entries of a board sort by: its releases in their order, then the guide's date."""
        return (release_key(self.release), self.date)


@functools.lru_cache(maxsize=4096)
def release_key(release: str) -> tuple[int, ...]:
    """What releases sort by: 9.2 is before 10.0. Images that are no release have ()."""
    if not re.fullmatch(r"\d{1,9}([._]\d{1,9})*", release):
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", release))


def same_time(release: str) -> tuple[int, ...]:
    """A release by its numbers alone: 9.2, 09.02 and 09.02.00 are one."""
    numbers = release_key(release)
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return numbers


def of_date(text: str) -> str:
    """The release that was in work at the date (YYYY-MM-DD) in a text; "" where there is none."""
    day = date_in(text)
    return max((r for r, began in _began() if day and began <= day), key=release_key, default="")


def began(release: str) -> str:
    """The first day (YYYY-MM-DD) of the work on a release, or the last before it that is known."""
    numbers = release_key(release)[:2]
    months = [month for name, month in _began() if release_key(name) <= numbers]
    return f"{months[-1] if months else _began()[0][1]}-01"


@functools.cache
def _began() -> tuple[tuple[str, str], ...]:
    return tuple(yamlfile.own("judge/published/releases.yaml").items())


def date_in(text: str) -> str:
    """The date (YYYY-MM-DD) in a file's name; "" where there is none."""
    match = re.search(r"20\d\d-[01]\d-[0-3]\d", text)
    return match[0] if match else ""


@functools.cache
def entries(file: Path = FILE) -> tuple[Entry, ...]:
    """The record; () where the project's folder is not there. Raises UsageError for another file."""
    try:
        data = zstd.ZstdDecompressor().decompress(file.read_bytes(), _MOST)
        return msgspec.msgpack.decode(data, type=tuple[Entry, ...])
    except FileNotFoundError:
        return ()
    except (OSError, zstd.ZstdError, msgspec.MsgspecError) as error:
        raise UsageError(f"{file}: is not a record of published figures: {error}") from error


def of_board(board: str, os: str = "", file: Path = FILE) -> list[Entry]:
    """A board's entries, oldest release first; of one operating system, if it is named."""
    mine = (e for e in entries(file) if e.board == board and os in ("", e.os))
    return sorted(mine, key=lambda entry: entry.place)


def search(
    entries: Iterable[Entry], words: str
) -> dict[tuple[str, str, str, str], list[tuple[Entry, Value]]]:
    """The figures that words name (`emmc_ext4 100 KiB write`), by operating system, benchmark, case
    and metric, in the order of the entries; of a release printed twice, the newest guide's.
    """
    names = words.lower().replace("kib", " kib").replace("mib", " mib").split()
    by_figure: dict[tuple[str, str, str, str], dict[tuple[int, ...], tuple[Entry, Value]]] = {}
    printed = [(entry, case, value) for entry in entries for case, value in values(entry)]
    exact = {case.benchmark for _, case, _ in printed}.intersection(names)
    for entry, case, value in printed:
        key = (case.benchmark, case.name, value.metric)
        if (not exact or case.benchmark in exact) and _names(*key).issuperset(names):
            by_figure.setdefault((entry.os, *key), {})[same_time(entry.release)] = entry, value
    return {key: list(by_release.values()) for key, by_release in by_figure.items()}


def values(entry: Entry) -> Iterator[tuple[PublishedCase, Value]]:
    """Every figure of an entry, with its row."""
    return ((case, value) for case in entry.cases for value in case.values)


@functools.lru_cache(maxsize=65536)
def _names(benchmark: str, case: str, metric: str) -> frozenset[str]:
    """The words by which a figure can be named."""
    text = f"{benchmark} {case} {metric} {size(case)}".lower()
    return frozenset((*text.split(), *re.split(r"[^a-z0-9.]+", text), case.lower()))


def size(case: str) -> str:
    """The size that a case's number of bytes means, as `100 KiB`; "" for other cases."""
    number = int(case) if case.isdigit() else 0
    for power, unit in ((20, "MiB"), (10, "KiB")):
        if number >= 1 << power and not number % (1 << power):
            return f"{number >> power} {unit}"
    return ""


def boards(entries: Iterable[Entry]) -> Mapping[str, list[Entry]]:
    """The entries by board."""
    by_board: dict[str, list[Entry]] = {}
    for entry in entries:
        by_board.setdefault(entry.board, []).append(entry)
    return by_board
