"""Read a guide's reStructuredText by docutils, which only this module imports; cells are taken as they stand,
because parsing each would cost most of the time and change the text.
"""

import csv
import itertools
import re
from collections.abc import Sequence
from typing import Any

from docutils import frontend, nodes, utils
from docutils.parsers.rst import Directive, Parser, directives
from docutils.parsers.rst.directives.tables import CSVTable

from evmperf.model.errors import UsageError, one_line
from evmperf_guides import match
from evmperf_guides.source import RT_LINUX, TITLE, GuideRow, Problem, Source, SourceTable, system_of

_CAPTION = re.compile(r"Table:\s+(?P<text>.*?)\s*\|?\s*", re.DOTALL)
# Sphinx's own, which docutils does not know: harmless to a reader of tables.
_SPHINX_WORDS = re.compile(r"^(No (directive|role) entry|Unknown (directive|interpreted text role))")
_WORDS = (nodes.paragraph, nodes.note, nodes.block_quote)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_STRAY = re.compile(
    r'\s*("[^"]*"(\s*,\s*"[^"]*")+|[^,"|:]+(\s*,\s*-?[0-9]+(\.[0-9]+)?( \([^()]*\))?)+)\s*,?\s*'
)
"""A line that looks like a row of figures, with quotes or without."""


class _Placeholder(nodes.General, nodes.Element):
    """Stands in the document for a csv-table."""


class _CsvTable(Directive):
    """csv-table that keeps its text."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = dict.fromkeys(CSVTable.option_spec, directives.unchanged)

    def run(self) -> list[nodes.Node]:
        caption = " ".join(self.arguments).strip()
        # A header may go on over several lines; docutils has joined them.
        header = _row(" ".join(self.options.get("header", "").split("\n")), self.lineno)
        foreign = sorted(set(self.options) & {"file", "url", "delim", "quote", "escape", "keepspace"})
        error = f"option :{foreign[0]}: is not read" if foreign else header.error
        lines = enumerate(self.content, self.content_offset + 1)
        rows = [_row(line, number) for number, line in lines if line.strip()]
        style = "argument" if caption else "none"
        table = SourceTable(self.lineno, caption, style, header.cells, rows, self.block_text)
        table.error = error or ("" if header.cells else "it has no header")
        node = _Placeholder()
        node["table"] = table
        return [node]


class _Container(Directive):
    """Sphinx's `only` and `ifconfig`: what is inside belongs to the guide."""

    optional_arguments = 1
    final_argument_whitespace = has_content = True

    def run(self) -> list[nodes.Node]:
        node = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, node, match_titles=True)
        return list(node.children)


def read(text: str, name: str = "guide") -> Source:
    """Read a guide with its problems; raises UsageError with the line where docutils cannot read on."""
    source = Source()
    document = _parse(text, name, source)
    parts = [node for node in document.children if isinstance(node, nodes.section) and node.children]
    titles = [section.children[0].astext() for section in parts]
    if len(parts) != 1:
        titles = [title for title in titles if TITLE.fullmatch(title.strip())]
    source.title, body = next(iter(titles), ""), parts[0] if len(parts) == 1 else document
    if words := TITLE.fullmatch(source.title.strip()):
        source.release = words["release"] or ""
    sections: list[list[SourceTable | str]] = []
    _collect(body, (), source, sections)
    seen: dict[tuple[int, str], int] = {}
    for section in (node for node in body.findall(nodes.section) if node is not body and node.children):
        source.headings.append(section.children[0].astext().strip())
        place, at = (id(section.parent), source.headings[-1]), (section.line or 2) - 1
        if (first := seen.setdefault(place, at)) < at:
            reason = f"its section has the title {place[1]!r} in line {first}, too"
            source.warnings.append(Problem(at, reason))
    source.os = system_of(source.title) or (RT_LINUX if RT_LINUX in map(system_of, source.headings) else "")
    _captions(sections)
    # Rows behind a dedent, or below a directive that is not known.
    inside = {table.line + n for table in source.tables for n in range(table.text.count("\n") + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if number not in inside and _STRAY.fullmatch(line):
            source.problems.append(Problem(number, "a row outside a csv-table is not read", line))
    return source


def _parse(text: str, name: str, source: Source) -> nodes.document:
    """The document; what is wrong with it, and what docutils only warns of, is noted."""
    settings = frontend.get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5
    settings.file_insertion_enabled = settings.raw_enabled = False
    document = utils.new_document(name, settings)

    def note(message: Any) -> None:
        words = message.children[0].astext() if message.children else ""
        if message["level"] >= utils.Reporter.WARNING_LEVEL and not _SPHINX_WORDS.match(words):
            line, reason = message.get("line") or 1, f"reStructuredText: {' '.join(words.split())}"
            is_read = message["level"] < utils.Reporter.ERROR_LEVEL
            (source.warnings if is_read else source.problems).append(Problem(line, reason))

    document.reporter.attach_observer(note)
    # docutils' register is global: our reading of csv-tables is in it for as long as we read.
    register: dict[str, Any] = vars(directives)["_directives"]
    saved = dict(register)
    register |= {"csv-table": _CsvTable, "only": _Container, "ifconfig": _Container}
    try:
        Parser().parse(text, document)
    except Exception as error:  # docutils' own faults on damaged text
        line = getattr(document, "current_line", None) or 1
        raise UsageError(f"{name} line {line}: docutils cannot read on: {one_line(error)}") from error
    finally:
        register.clear()
        register.update(saved)
    return document


def _row(line: str, number: int) -> GuideRow:
    """One line of a csv-table. Guides have a row a line, so a missing quote costs one row."""
    try:
        cells = next(csv.reader([line], strict=True, skipinitialspace=True), [])
    except csv.Error as error:
        return GuideRow((), number, f"not comma-separated values: {error}")
    return GuideRow(tuple(cells), number)


def _collect(
    parent: nodes.Element, path: tuple[str, ...], source: Source, sections: list[list[SourceTable | str]]
) -> None:
    """Gather the tables below a node, in order, with the captions that belong to them."""
    here: list[SourceTable | str] = []
    rubric = ""
    for node in parent.children:
        if isinstance(node, _Placeholder):
            table: SourceTable = node["table"]
            table.section, table.rubric = path, rubric
            here.append(table)
            source.tables.append(table)
        elif isinstance(node, nodes.rubric):
            rubric = node.astext().strip()
        elif isinstance(node, nodes.paragraph) and (words := _CAPTION.fullmatch(node.astext())):
            if not (here and here[-1] == ""):  # that is of the list of modules
                here.append(words["text"])
        elif isinstance(node, _WORDS) and not node.next_node(_Placeholder):
            if here and isinstance(here[-1], SourceTable):
                here[-1].below = f"{here[-1].below} {node.astext()}".strip()
        elif isinstance(node, nodes.table):
            here.append("")
            rows = [[e.astext().strip() for e in row.findall(nodes.entry)] for row in node.findall(nodes.row)]
            if rows and "Description" in rows[0]:
                source.modules += [row[0] for row in rows[1:] if row]
            if any(_NUMBER.fullmatch(cell) for row in rows for cell in row):
                message = "reStructuredText: a table of figures in another form than csv-table is not read"
                first = next((inner.line for inner in node.findall() if inner.line), 1)
                source.problems.append(Problem(first, message))
        elif isinstance(node, nodes.section):
            title = node.children[0].astext().strip() if node.children else ""
            _collect(node, (*path, title), source, sections)
        elif isinstance(node, nodes.Element) and not isinstance(node, nodes.TextElement):
            _collect(node, path, source, sections)
    sections.append(here)


def _captions(sections: Sequence[list[SourceTable | str]]) -> None:
    """Give each `Table:` line to the table before or after it: as its section shows by taking turns, or else
    as the guide's other sections have it, or else so that most tables agree with it; else an error.
    """
    left, seen = [], set()
    for here in sections:
        entries = [e for e in here if e and (isinstance(e, str) or not e.caption)]
        turns = "".join("C" if isinstance(entry, str) else "T" for entry in entries)
        if of_turns := re.fullmatch("(?P<before>(CT)+)|(?P<after>(TC)+)", turns):
            seen.add("before" if of_turns["before"] else "after")
            _caption(here, "before" if of_turns["before"] else "after")
        elif {"C", "T"} <= set(turns):
            left.append(here)
    for here in left:
        mine = [table for table in here if isinstance(table, SourceTable)]
        fits = {}
        for style in seen if len(seen) == 1 else ("before", "after"):
            _caption(here, style)
            fits[style] = sum(map(match.fits_caption, mine))
        _caption(here, max(fits, key=lambda style: fits[style]))
        why = "nothing tells whether `Table:` lines of its section belong to the tables before or after them"
        for table in mine if len(set(fits.values())) < len(fits) else ():
            table.error = table.error or why


def _caption(here: Sequence[SourceTable | str], style: str) -> None:
    """Set the captions of a section's tables, from the lines `before` or `after` them."""
    for table in here:
        if isinstance(table, SourceTable) and table.caption_style in ("before", "after"):
            table.caption, table.caption_style = "", "none"
    for line, table in itertools.pairwise(here if style == "before" else here[::-1]):
        if isinstance(line, str) and line and isinstance(table, SourceTable) and not table.caption:
            table.caption, table.caption_style = line, style
