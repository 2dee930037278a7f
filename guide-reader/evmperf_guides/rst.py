"""Read a guide's reStructuredText by docutils, which only this module imports; cells are taken as they stand,
because parsing each would cost most of the time and change the text.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docutils import frontend, nodes, utils
from docutils.parsers.rst import Directive, Parser, directives
from docutils.parsers.rst.directives.tables import CSVTable

from evmperf.model.errors import UsageError, one_line
from evmperf_guides import settle
from evmperf_guides.source import RT_LINUX, TITLE, GuideRow, Problem, Source, SourceTable, system_of

_WARNING, _ERROR = 2, 3
"""docutils' levels of messages: at errors something is not read."""
_CAPTION = re.compile(r"Table:\s+(?P<text>.*?)\s*\|?\s*", re.DOTALL)
# Sphinx's own, which docutils does not know: harmless to a reader of tables.
_SPHINX_WORDS = re.compile(r"^(No (directive|role) entry|Unknown (directive|interpreted text role))")
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
        node = _Placeholder()
        caption = " ".join(self.arguments).strip()
        style = "argument" if caption else "none"
        table = SourceTable(self.lineno, (), caption, style, (), [], self.block_text)
        _fill(table, self.options, list(self.content), self.content_offset + 1)
        node["table"] = table
        return [node]


def read(text: str, name: str = "guide") -> Source:
    """Read a guide with its problems; raises UsageError with the line where docutils cannot read on."""
    document, problems, warnings = _parse(text, name)
    title, body = _title(document)
    match = TITLE.fullmatch(title.strip())
    source = Source(title, "", match["release"] or "" if match else "", problems=problems, warnings=warnings)
    sections: list[list[SourceTable | str]] = []
    _collect(body, (), source, sections)
    source.os = system_of(title) or (RT_LINUX if RT_LINUX in map(system_of, source.headings) else "")
    settle.captions(sections)
    # Rows behind a dedent, or below a directive that is not known.
    inside = {table.line + n for table in source.tables for n in range(table.text.count("\n") + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if number not in inside and _STRAY.fullmatch(line):
            source.problems.append(Problem(number, "a row outside a csv-table is not read", line))
    return source


def _parse(text: str, name: str) -> tuple[nodes.document, list[Problem], list[Problem]]:
    """The document, what is wrong with it, and what docutils only warns of."""
    settings = frontend.get_default_settings(Parser)
    settings.report_level = settings.halt_level = 5
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.warning_stream = io.StringIO()
    document = utils.new_document(name, settings)
    problems: list[Problem] = []
    warnings: list[Problem] = []

    def note(message: Any) -> None:
        words = message.children[0].astext() if message.children else ""
        if message["level"] >= _WARNING and not _SPHINX_WORDS.match(words):
            line, reason = message.get("line") or 1, f"reStructuredText: {' '.join(words.split())}"
            (problems if message["level"] >= _ERROR else warnings).append(Problem(line, reason))

    document.reporter.attach_observer(note)
    # docutils' register is global: our reading of csv-tables is in it for as long as we read.
    register: dict[str, Any] = vars(directives)["_directives"]
    saved = dict(register)
    register["csv-table"] = _CsvTable
    try:
        Parser().parse(text, document)
    except Exception as error:  # docutils' own faults on damaged text
        line = getattr(document, "current_line", None) or 1
        raise UsageError(f"{name} line {line}: docutils cannot read on: {one_line(error)}") from error
    finally:
        register.clear()
        register.update(saved)
    return document, problems, warnings


def _fill(table: SourceTable, options: Mapping[str, str], content: Sequence[str], first_line: int) -> None:
    """Read header and rows of one csv-table; what is wrong with them goes into `error`."""
    foreign = sorted(set(options) & {"file", "url", "delim", "quote", "escape", "keepspace"})
    if foreign:
        table.error = f"option :{foreign[0]}: is not read"
        return
    table.rows = [_row(line, first_line + number) for number, line in enumerate(content) if line.strip()]
    # A header may go on over several lines; docutils has joined them.
    header = _row(" ".join(options.get("header", "").split("\n")), table.line)
    if header.cells or header.error:
        table.header, table.error = header.cells, header.error
    else:
        table.error = "it has no header"


def _row(line: str, number: int) -> GuideRow:
    """One line of a csv-table. Guides have a row a line, so a missing quote costs one row."""
    try:
        cells = next(csv.reader([line], strict=True, skipinitialspace=True), [])
    except csv.Error as error:
        return GuideRow((), number, f"not comma-separated values: {error}")
    return GuideRow(tuple(cells), number)


def _title(document: nodes.document) -> tuple[str, nodes.Element]:
    """The guide's title and what is under it."""
    sections = [node for node in document.children if isinstance(node, nodes.section) and node.children]
    titles = [section.children[0].astext() for section in sections]
    if len(sections) == 1:
        return titles[0], sections[0]
    return next((title for title in titles if TITLE.fullmatch(title.strip())), ""), document


def _collect(
    parent: nodes.Element, path: tuple[str, ...], source: Source, sections: list[list[SourceTable | str]]
) -> None:
    """Gather the tables below a node, in order, with the captions that belong to them."""
    here: list[SourceTable | str] = []
    rubric = ""
    source.warnings += _titled_twice(parent)
    for node in parent.children:
        if isinstance(node, _Placeholder):
            table: SourceTable = node["table"]
            table.section, table.rubric = path, rubric
            here.append(table)
            source.tables.append(table)
        elif isinstance(node, nodes.rubric):
            rubric = node.astext().strip()
        elif isinstance(node, nodes.paragraph):
            match = _CAPTION.fullmatch(node.astext())
            if match and not (here and here[-1] == ""):  # that is of the list of modules
                here.append(match["text"])
            elif not match:
                _note(here, node)
        elif isinstance(node, nodes.note | nodes.block_quote) and not node.next_node(_Placeholder):
            _note(here, node)
        elif isinstance(node, nodes.table):
            here.append("")
            rows = [[e.astext().strip() for e in row.findall(nodes.entry)] for row in node.findall(nodes.row)]
            if rows and "Description" in rows[0]:
                source.modules += [row[0] for row in rows[1:] if row]
            if any(_NUMBER.fullmatch(cell) for row in rows for cell in row):
                message = "reStructuredText: a table of figures in another form than csv-table is not read"
                line = next((inner.line for inner in node.findall() if inner.line), 1)
                source.problems.append(Problem(line, message))
        elif isinstance(node, nodes.section):
            title = node.children[0].astext().strip() if node.children else ""
            source.headings.append(title)
            _collect(node, (*path, title), source, sections)
        elif isinstance(node, nodes.Element) and not isinstance(node, nodes.TextElement):
            _collect(node, path, source, sections)
    sections.append(here)


def _titled_twice(parent: nodes.Element) -> Iterator[Problem]:
    """Sections with the title of another one beside them."""
    lines: dict[str, int] = {}
    for node in parent.children:
        if isinstance(node, nodes.section) and node.children:
            title, line = node.children[0].astext().strip(), (node.line or 2) - 1
            if (first := lines.setdefault(title, line)) < line:
                yield Problem(line, f"its section has the title {title!r} in line {first}, too")


def _note(here: Sequence[SourceTable | str], node: nodes.Element) -> None:
    """Keep the words below a table with it."""
    if here and isinstance(here[-1], SourceTable):
        here[-1].below = f"{here[-1].below} {node.astext()}".strip()
