"""Performance data sheets of TI's MCU+ SDK, in Markdown: bare metal on one board, tables of figures below
headings, with bullets `- PHY : enabled` and bold names of cores between them.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from evmperf_guides.source import Problem

from evmperf.judge.published import identity, record
from evmperf.judge.published.record import Entry, PublishedCase, Value
from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError
from evmperf.model.units import Unit

OS = "bare metal"
RELEASE = "MCU+ SDK"
"""Of all sheets: none names its release."""

_UNITS = {"ms": Unit.MILLISECOND, "us": Unit.MICROSECOND, "ns": Unit.NANOSECOND, "s": Unit.SECOND}
_UNITS |= {"msec": Unit.MILLISECOND, "usec": Unit.MICROSECOND, "sec": Unit.SECOND, "%": Unit.PERCENT}
_UNITS |= dict.fromkeys(("MiBps", "MiB/s"), Unit.MEBIBYTE_PER_SECOND)
_UNITS |= dict.fromkeys(("MBps", "MB/s"), Unit.MEGABYTE_PER_SECOND)
_UNITS |= dict.fromkeys(("Mbps", "Mbit/s", "Mbits/s", "Mbits/sec"), Unit.MEGABIT_PER_SECOND)
_UNITS |= dict.fromkeys(("KiBps", "KiB/s"), Unit.KIBIBYTE_PER_SECOND)
_SIZES = {"mib", "mb", "kib", "kb", "bytes", "byte", "bits", "b"}
_HEADING = re.compile(r" ?(#{1,6}) +(.*?)(?: *\{#(\w+)\})?")
_BOLD = re.compile(r"\*\*([\w -]+?) *: *\*\*|\*\*([\w -]+?)\*\* *:?")
_FACT = re.compile(r"\s*[-*] +([^:]{1,60}?)\s*: *(\S.*)")
_ALONE = re.compile(r"\s*[-*] +(.*?)~? ?(\d+(?:\.\d+)?) ?(ms|us|ns)\.?")
_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
_IN_BRACKETS = re.compile(r"(.*?) ?[(\[](?:in )?([^()]*?)[)\]]")
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ?([a-zA-Z%/]*)")
_STAGE = re.compile(r"SBL Stage\d")
_TOTAL = re.compile(r"\btotal\b", re.IGNORECASE)
_APART = 0.01
"""Relative difference between a total and the sum of its rows that rounding and loops may make."""
_DRIVERS = ("sbl", "boot"), ("emmc", "emmc"), ("mmcsd", "mmcsd"), ("ospi", "ospi"), ("ipc", "ipc")


@dataclass
class Sheet:
    """A sheet that was read: the board as printed in its anchor, its figures by the board that each part is
    about, and what was not read.
    """

    file: str
    board: str
    sha256: str
    cases: dict[str, list[PublishedCase]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def entries(self) -> list[Entry]:
        """The record's entries, one a board."""
        date = record.date_in(self.file)
        return [
            Entry(board, self.board, OS, RELEASE, date, False, self.file, self.sha256, packed)
            for board, cases in self.cases.items()
            for packed in [msgspec.Raw(msgspec.msgpack.encode(cases))]
        ]


@dataclass
class _Place:
    """Where a line stands: headings by depth, the core in bold, and the bullets above."""

    headings: dict[int, str] = field(default_factory=dict)
    core: str = ""
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    board: str
    benchmark: str
    keys: tuple[str, ...]
    values: tuple[Value, ...]
    facts: dict[str, str]

    @property
    def name(self) -> str:
        return "|".join(filter(None, self.keys))


def load(file: Path) -> Sheet:
    """Read a sheet; raises UsageError for a file that is none, or has no figure."""
    return interpret(inputs.text(file, limits.GUIDE_BYTES), file.name)


def interpret(text: str, name: str) -> Sheet:
    """The figures of a sheet's text; raises UsageError where its first heading names no board."""
    lines = text.splitlines()
    first = next((match for match in map(_HEADING.fullmatch, lines) if match), None)
    anchor = re.fullmatch(r"DATASHEET_(\w+)", (first and first[3]) or "")
    if not anchor:
        raise UsageError(f"{name}: is no data sheet: its first heading has no anchor {{#DATASHEET_BOARD}}")
    sheet = Sheet(name, anchor[1], hashlib.sha256(text.encode()).hexdigest())
    place, rows = _Place(), []
    number, told = 0, False
    while number < len(lines):
        line, number = lines[number], number + 1
        if heading := _HEADING.fullmatch(line):
            depth = len(heading[1])
            place = _Place(
                {d: h for d, h in place.headings.items() if d < depth} | {depth: heading[2].strip()}
            )
        elif bold := _BOLD.fullmatch(line.strip()):
            place = _Place(place.headings, (bold[1] or bold[2]).strip())
        elif alone := _ALONE.fullmatch(line):
            what = alone[1].strip(" ~:") or place.headings[max(place.headings)]
            value = Value("latency", str(_UNITS[alone[3]]), float(alone[2]), line=number)
            rows.append(_Row(*_about(sheet, place), (place.core, what), (value,), dict(place.facts)))
        elif fact := _FACT.fullmatch(line):
            place = replace(place, facts=place.facts | {fact[1]: fact[2].strip()})
        elif "|" in line and number < len(lines) and _RULE.fullmatch(lines[number]):
            end = next((n for n in range(number, len(lines)) if "|" not in lines[n]), len(lines))
            rows += _table(sheet, place, lines[number - 1 : end], number)
            number = end
        elif re.search("<t[dh]\\b", line) and not _is_set_up(place):
            if not told:
                sheet.problems.append(Problem(number, "a table in HTML is not read", table=True))
            told = True
            continue
        told = told and bool(line.strip())
    _put(sheet, rows)
    if not sheet.cases:
        raise UsageError(f"{name}: is no data sheet: it has no figure with a unit")
    return sheet


def _is_set_up(place: _Place) -> bool:
    return any("setup" in heading.lower() for heading in place.headings.values())


def _about(sheet: Sheet, place: _Place) -> tuple[str, str]:
    """The board of the innermost heading, by its first words, or the sheet's; and the table's name."""
    words = re.findall(r"[\w.]+", place.headings.get(max(place.headings, default=0), ""))
    for count in range(min(4, len(words)), 1, -1):
        for order in (words[:count], [words[0], *reversed(words[1:count])]):
            if board := identity.of_module(" ".join(order)):
                return board, _slug(words[count:])
    return board_named(sheet.board), _slug(words)


def _slug(words: Sequence[str]) -> str:
    return "_".join(words).lower().replace(".", "_")


def board_named(printed: str) -> str:
    """The board of a sheet's anchor (`AM62PX_EVM`) as guides name it; without a guide it keeps its name."""
    soc, _, kind = printed.lower().partition("_")
    pattern = rf"{re.escape(soc)}x?[_-](?:hs)?({re.escape(kind)}|evm|sk)(?:-fs)?"
    names = sorted(name for name in identity.names() if re.fullmatch(pattern, name))
    mine = [name for name in names if kind in name] or names
    return identity.board(mine[0]) if mine else f"{soc}-{kind or 'evm'}"


def _table(sheet: Sheet, place: _Place, lines: Sequence[str], first: int) -> Iterator[_Row]:
    """The rows of a table; a total that is not the sum of its column, and what has no unit, is told."""
    heads = _cells(lines[0])
    names, units = zip(*map(_head, heads), strict=True)
    if _is_set_up(place):
        return
    body = [(first + n, _cells(line)) for n, line in enumerate(lines) if n > 1 and not _RULE.fullmatch(line)]
    figures = [n for n, unit in enumerate(units) if unit in _UNITS]
    if not figures:
        figures = [n for n in range(1, len(heads)) if body and _of_cells(body, n)]
    if not figures:
        sheet.problems.append(Problem(first, f"no column has a known unit: {' | '.join(heads)}", table=True))
        return
    board, benchmark = _about(sheet, place)
    named = [n for n in range(len(heads)) if n not in figures]
    # What is counted stands behind the figures, keys before them; unless rows need what is behind to differ.
    first_keys = [n for n in named if n < min(figures)]
    whole = [cells for _, cells in body if len(cells) == len(heads)]
    if len({tuple(cells[n] for n in first_keys) for cells in whole}) == len(whole):
        named = first_keys
    sums = dict.fromkeys(figures, 0.0)
    for line, cells in body:
        if len(cells) <= max((*figures, *named)):
            sheet.problems.append(Problem(line, f"a row of {len(cells)} cells under {len(heads)} headings"))
            continue
        keys = [f"{cells[n]} {_size(units[n])}".strip() for n in named]
        stage, printed = (_STAGE.match(heads[named[0]]), _STAGE.match(keys[0])) if named else (None, None)
        if stage and printed and stage[0] != printed[0]:
            reason = f"{keys[0]!r} is in the table of {stage[0]}, and counts as that"
            sheet.problems.append(Problem(line, reason, kept=True))
            keys[0] = keys[0].replace(printed[0], stage[0], 1)
        values = []
        for n in figures:
            number = _NUMBER.fullmatch(cells[n])
            unit = _UNITS.get(number[2] or units[n]) if number else None
            if number is None or unit is None or (number[2] and units[n] and number[2] != units[n]):
                sheet.problems.append(
                    Problem(line, f"{cells[n]!r} is no figure in {units[n] or 'a known unit'}")
                )
                continue
            value = float(number[1])
            if keys and _TOTAL.search(keys[0]) and not math.isclose(value, sums[n], rel_tol=_APART):
                reason = f"the rows add up to {sums[n]:.1f} {unit}, not to {value:g}"
                sheet.problems.append(Problem(line, reason, kept=True))
            sums[n] += value
            values.append(Value(_slug(re.findall(r"\w+", names[n])), str(unit), value, line=line))
        if values:
            yield _Row(board, benchmark, (place.core, *keys), tuple(values), dict(place.facts))


def _cells(line: str) -> list[str]:
    cells = [" ".join(cell.split()) for cell in line.strip().split("|")]
    return cells[1 if not cells[0] else 0 : -1 if not cells[-1] else None]


def _head(text: str) -> tuple[str, str]:
    """A heading's name and unit; `MBps` is not `Mbps`."""
    match = _IN_BRACKETS.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def _of_cells(body: Sequence[tuple[int, Sequence[str]]], column: int) -> bool:
    """Whether each cell of a column has a figure with its own unit."""
    found = [_NUMBER.fullmatch(cells[column]) if column < len(cells) else None for _, cells in body]
    return all(match and match[2] in _UNITS for match in found)


def _size(unit: str) -> str:
    known = unit.lower()
    spelt = {"mib": "MiB", "kib": "KiB", "bytes": "B", "byte": "B"}
    return spelt.get(known, known) if known in _SIZES else ""


def _put(sheet: Sheet, rows: Sequence[_Row]) -> None:
    """Put rows into the sheet; rows of one name are told apart by the bullets in which they differ."""
    alike: dict[tuple[str, str, str], list[_Row]] = {}
    for row in rows:
        alike.setdefault((row.board, row.benchmark, row.name), []).append(row)
    for (board, benchmark, name), group in alike.items():
        keys = sorted({key for row in group for key in row.facts})
        differ = [key for key in keys if len({row.facts.get(key) for row in group}) > 1]
        taken: set[str] = set()
        for row in group:
            more = [f"{key} {row.facts.get(key, 'not said')}" for key in differ]
            whole = "|".join([name, *more])
            if whole in taken:
                line = row.values[0].line
                sheet.problems.append(Problem(line, f"{benchmark} has a second row {whole!r}"))
                continue
            taken.add(whole)
            driver = next((driver for word, driver in _DRIVERS if word in benchmark.split("_")), "")
            case = PublishedCase(benchmark, driver, "", whole, row.values, row.facts)
            sheet.cases.setdefault(board, []).append(case)
