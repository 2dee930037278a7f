"""Which benchmark a table is, by what its place, caption, header and rows mean together: sections are
renamed, `perf` heads nine tables, and some have no caption. Where two contradict each other, both are named.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evmperf.boards import yamlfile
from evmperf.judge.published import identity
from evmperf.judge.published.declared import MatchedColumn, Table, numbered, tables
from evmperf.model.errors import UsageError
from evmperf_guides.source import SourceTable

_BOARD_HEADER = re.compile(r"(?P<board>[A-Za-z0-9][\w.-]*):\s*(?P<title>\S.*)")
_NO_UNIT = re.compile(r"\(local_\w+\)|\(?%\)?")
"""What guides write or leave out behind a title, in lower case."""
_UNIT_SUFFIX = re.compile(r"(?P<label>.*) \((?P<unit>[^()]*)\)")
_WITHIN = {("device", "msata"): "sata", ("device", "usbdev"): "usbhost"}
"""A value of an inner heading and the outer heading's that it refines."""
_Meaning = Mapping[str, str]
"""Values by quantity, {"device": "emmc"}; "Boot from SATA or NAND" has two of one, so it says none."""


@dataclass(frozen=True)
class Match:
    """A recognised table."""

    table: Table
    columns: tuple[MatchedColumn, ...]

    @property
    def boards(self) -> tuple[str, ...]:
        """The boards in the header, in its order."""
        return tuple(dict.fromkeys(column.board for column in self.columns if column.board))


@dataclass(frozen=True)
class Settled:
    """What a table is, and what is doubtful about it; or None, why it is not known, and what it may be."""

    match: Match | None
    why: str = ""
    candidates: Sequence[Match] = ()


@dataclass
class _Evidence:
    """What a table's headings and caption say, by quantity: the value, and the words for it."""

    quantities: dict[str, tuple[str, str]]
    named: dict[str, str] = field(default_factory=dict)
    """Benchmarks that a text names exactly, with the text."""
    contradiction: str = ""
    overruled: str = ""
    """The heading that caption and header contradict."""

    def against(self, table: Table) -> list[str]:
        """The texts that say something else than the table is about."""
        quantities, about = self.quantities.items(), about_of(table)
        return list(dict.fromkeys(text for q, (value, text) in quantities if about.get(q) != value))

    def missing(self, table: Table) -> list[str]:
        """The quantities of a table of which nothing is said."""
        return [quantity for quantity in about_of(table) if quantity not in self.quantities]


def identify(source: SourceTable) -> Settled:
    """The benchmark that a table shows, by the table alone."""
    evidence = _evidence(source)
    if wrong := source.error or evidence.contradiction:
        return Settled(None, wrong)
    fitting = [Match(t, columns) for t in tables().values() if (columns := columns_of(t, source.header))]
    wanted = evidence.named or tables()
    agreed = [m for m in fitting if m.table.benchmark in wanted and not evidence.against(m.table)]
    if agreed:
        return _by_rows(agreed, evidence, source)
    texts = dict.fromkeys(text for match in fitting for text in evidence.against(match.table))
    named = [f"{text!r} is {name}" for name, text in evidence.named.items()]
    titles = dict.fromkeys(split_header(title)[1] for title in source.header[:6])
    header = f"its header {', '.join(map(repr, titles))} is that of "
    header += ", ".join(match.table.benchmark for match in fitting[:3]) or "no known table"
    return Settled(None, ", and ".join([header, *named, *(f"{text!r} says otherwise" for text in texts)]))


def split_header(header: str) -> tuple[str, str]:
    """Board and title of a column header; board "" where it names none."""
    if match := _BOARD_HEADER.fullmatch(header.strip()):
        return match["board"], match["title"].strip()
    return (header.strip(), "") if header.strip() in identity.names() else ("", header.strip())


def row_key(cells: Sequence[str], table: Table) -> tuple[str, str | None]:
    """The case that a row's key cells make, two joined with `|`, and the unit in its label, if any."""
    label = "|".join(cell.strip() for cell in cells[: len(table.keys)])
    match = _UNIT_SUFFIX.fullmatch(label) if table.units_in_labels else None
    return table.case_of(match["label"] if match else label), match and match["unit"]


def columns_of(table: Table, header: Sequence[str]) -> tuple[MatchedColumn, ...] | None:
    """The columns of a header, if it is one of the table's."""
    count = len(table.keys)
    keys = zip(header, table.keys, strict=False)
    alike = (identity.plain(one) == identity.plain(key) or _alike(key, one) is not None for one, key in keys)
    if len(header) <= count or not all(alike):
        return None
    whole = [column for text in header[count:] if (column := column_of(table, text))]
    boards = {column.board for column in whole}
    seen = {(column.board, column.metric) for column in whole}
    if not len(seen) == len(whole) == len(header) - count or all(column.words for column in whole):
        return None
    if "" in boards and len(boards) > 1:
        # A table whose columns name no board may name its only one over one of them.
        if table.board_in_header or len(boards) > 2:
            return None
        (board,) = boards - {""}
        whole = [replace(column, board=board) for column in whole]
    return tuple(whole)


def column_of(table: Table, text: str) -> MatchedColumn | None:
    """What one header is in a table; None if nothing."""
    board, title = split_header(text)
    for metric, header in table.lists.items():
        if _alike(header, title) is not None:
            return MatchedColumn(board, title, metric, text, listed=True)
    for columns, words in ((table.columns, False), (table.text_columns, True)):
        for name, texts in columns.items():
            for header in texts:
                if (number := _alike(header, title)) is not None:
                    return MatchedColumn(board, title, name.replace("{n}", number), text, words)
    return None


def _alike(header: str, title: str) -> str | None:
    """Whether a header is a known one but for case and blanks; the number of its `{n}`."""
    return numbered(_spelt(header), _spelt(title))


@functools.lru_cache(maxsize=4096)
def _spelt(title: str) -> str:
    return " ".join(_NO_UNIT.sub("", title.lower()).split()).replace(" (", "(")


def _evidence(source: SourceTable) -> _Evidence:
    said, contradiction = _along(source.section)
    inner, overruled = source.section[-1:], ""
    if source.name and inner and identity.plain(inner[0]) == identity.plain(source.name):
        # A heading that is a level too deep stands below its neighbour's: caption and heading say
        # together what it is, where they are of one device.
        own, (outer, of_outer) = _quantities(inner[0]), _along(source.section[:-1])
        wrong = [q for q in ("system", "tool") if q in outer and own.get(q) != outer[q][0]]
        if wrong and own.get("device") == outer.get("device", ("",))[0]:
            said = {q: pair for q, pair in outer.items() if q not in wrong}
            said |= {q: (value, inner[0]) for q, value in own.items()}
            contradiction, overruled = of_outer, outer[wrong[0]][1]
    evidence = _Evidence(said, contradiction=contradiction, overruled=overruled)
    # A rubric stands above all tables that follow it, of other kinds too: it counts for tables
    # that say nothing themselves.
    caption, header = source.name or source.rubric, _of_header(source)
    for quantity, value in _quantities(caption).items():
        before = evidence.quantities.setdefault(quantity, (value, caption))
        if before[0] == value:
            continue
        if header.get(quantity) == value and quantity == "system":
            evidence.quantities[quantity] = (value, caption)
            evidence.overruled = before[1]
        elif not evidence.contradiction:
            evidence.contradiction = f"the caption {caption!r} contradicts the heading {before[1]!r}"
    if source.name:
        evidence.named = dict.fromkeys(_names(source.name), source.name)
    elif inner:
        # A section may hold further tables than the one it is called after.
        fitting = (name for name in _names(inner[0]) if columns_of(tables()[name], source.header))
        evidence.named = dict.fromkeys(fitting, inner[0])
    return evidence


def _of_header(source: SourceTable) -> _Meaning:
    return _quantities(" ".join(split_header(title)[1] for title in source.header))


def fits_caption(source: SourceTable) -> bool:
    """Whether a table is a known one and its header says nothing else than its caption."""
    said = _quantities(source.name)
    agrees = all(said.get(quantity, value) == value for quantity, value in _of_header(source).items())
    return agrees and identify(source).match is not None


def _names(text: str) -> Iterable[str]:
    """Benchmarks whose title or caption a text is, where it says all that they are about."""
    words, says = identity.plain(text), dict(_quantities(text))
    for name, table in tables().items():
        titles = (table.title, *table.captions)
        if words and says == dict(about_of(table)) and words in map(identity.plain, titles):
            yield name


def _by_rows(agreed: list[Match], evidence: _Evidence, source: SourceTable) -> Settled:
    """The one whose rows these are."""
    counts = {match.table.benchmark: _known_rows(match.table, source) for match in agreed}
    if any(row.cells for row in source.rows) and not any(counts.values()):
        return Settled(None, _other_rows(agreed, evidence, source))
    most = max(counts.values())
    best = [match for match in agreed if counts[match.table.benchmark] == most]
    said_little = source.name and not _quantities(source.name) and not evidence.named
    if len(best) > 1 and not said_little:
        # Without a word of a second variant, a table is the plain one.
        fewest = min(len(evidence.missing(match.table)) for match in best)
        best = [match for match in best if len(evidence.missing(match.table)) == fewest]
    titled = [m for m in best if identity.plain(source.name) in map(identity.plain, m.table.captions)]
    if len(best) > 1 and len(titled) == 1:
        best = titled
    if len(best) > 1:
        names = ", ".join(match.table.benchmark for match in best)
        caption = f"the caption {source.caption!r}" if source.caption else "no caption"
        return Settled(None, f"with {caption} it could be any of {names}", best)
    (choice,) = best
    if "device" in evidence.missing(choice.table) and choice.table.benchmark not in evidence.named:
        where = " / ".join(source.section) or "before the first heading"
        why = f"its device is unknown (at {where!r}); its header fits {choice.table.benchmark}"
        return Settled(None, why)
    below = evidence.overruled
    return Settled(choice, f"read as caption and header say, below {below!r}" if below else "")


def _known_rows(table: Table, source: SourceTable) -> int:
    return sum(table.knows(row_key(row.cells, table)[0]) for row in source.rows if row.cells)


def _other_rows(agreed: Sequence[Match], evidence: _Evidence, source: SourceTable) -> str:
    """Why no row is known: they are another table's, or nobody's."""
    others = [t for t in tables().values() if columns_of(t, source.header) and _known_rows(t, source)]
    name, labels = agreed[0].table.benchmark, [row.cells[0] for row in source.rows if row.cells]
    shown = ", ".join(map(repr, labels[:3])) + (", ..." if len(labels) > 3 else "")
    if not others:
        return f"none of its rows ({shown}) is one of {name}"
    other = min(others, key=lambda table: len(evidence.against(table))).benchmark
    said = source.name or " / ".join(source.section)
    return f"{said!r} says {name}, its rows ({shown}) are those of {other}"


@functools.lru_cache(maxsize=4096)
def _quantities(text: str) -> _Meaning:
    """What a text says."""
    words = identity.plain(text)
    values = {q: [v for v, pattern in of.items() if pattern.search(words)] for q, of in _patterns().items()}
    return {quantity: fitting[0] for quantity, fitting in values.items() if len(fitting) == 1}


def _along(headings: Sequence[str]) -> tuple[dict[str, tuple[str, str]], str]:
    """What headings say, by quantity: value and heading; and a sentence if two contradict each other."""
    agreed: dict[str, tuple[str, str]] = {}
    for heading in headings:
        for quantity, value in _quantities(heading).items():
            before = agreed.get(quantity, (value, heading))
            if before[0] not in (value, _WITHIN.get((quantity, value))):
                return agreed, f"the heading {heading!r} is below {before[1]!r}"
            agreed[quantity] = (value, heading)
    return agreed, ""


def about_of(table: Table) -> _Meaning:
    """What a table is about, by quantity: as its file says it, else as its headings do. Raises UsageError for
    a word of the file that meaning.yaml does not know.
    """
    if not table.about:
        return {quantity: value for quantity, (value, _) in _along([*table.section, table.title])[0].items()}
    patterns = _patterns()
    for quantity, value in table.about.items():
        if value not in patterns.get(quantity, {}):
            raise UsageError(f"{table.benchmark}.yaml: about: meaning.yaml has no {quantity}: {value}")
    return table.about


@functools.cache
def _patterns() -> dict[str, dict[str, re.Pattern[str]]]:
    return {
        quantity: {
            value: re.compile(rf"(?<![a-z0-9])(?:{'|'.join(patterns)})(?![a-z0-9])")
            for value, patterns in values.items()
        }
        for quantity, values in yamlfile.read(Path(__file__).with_name("meaning.yaml")).items()
    }
