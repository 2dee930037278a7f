"""A guide as a web page, by Sphinx with the theme `guide`, and as PDF, printed from that page by WeasyPrint.
The page is one file; its tables scroll on a narrow screen. Any warning of Sphinx is an error.
"""

import html
import io
import re
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx.writers.html5 import HTML5Translator

from evmperf.model.errors import ToolError, UsageError
from evmperf.publish.guide import conditions
from evmperf.publish.guide.writer import Head
from evmperf.publish.pages import look

_CELL = re.compile(
    r"(?P<mean>~?-?[0-9][0-9.]*)(?P<bounds> \(min [^)]*\))?(?P<unit> [A-Za-z]+/s)?"
    r"(?P<change> \[[^\]]*\])?"
)
"""A figure as `evmperf.publish.guide.writer` prints it."""
_DEEPEST = 2
"""Levels of the list of contents."""


def build(source: Path, target: Path, head: Head) -> Path:
    """Build a guide's page in a folder; returns its file. Raises ToolError with Sphinx's words."""
    target.mkdir(parents=True, exist_ok=True)
    described = {module.name: module.description for module in head.modules}
    settings = {
        "extensions": [__name__],
        "project": head.title,
        "root_doc": source.stem,
        # Nothing else in the folder is of the guide.
        "include_patterns": [source.name],
        "html_theme": "guide",
        "guide_cover": {
            **{name: getattr(head, name) for name in ("title", "os", "release", "facts")},
            "boards": [(board, described.get(board, "")) for board in head.boards],
        },
        "guide_conditions": str(source) if conditions.beside(source).is_file() else "",
        "highlight_language": "none",
        # What stands in the guide stays as it is.
        "smartquotes": False,
    }
    messages = io.StringIO()
    # Sphinx's notes are of no use to readers of the folder.
    with tempfile.TemporaryDirectory(prefix="evmperf-guide-") as scratch:
        # What was copied from somebody's guide brings no markup and no file into the page.
        rules = "[general]\nraw_enabled: no\nfile_insertion_enabled: no\n"
        (Path(scratch) / "docutils.conf").write_text(rules, "utf-8")
        places = (source.parent, None, target, scratch, "singlehtml")
        try:
            with patch_docutils(scratch), docutils_namespace():
                sphinx = Sphinx(*places, settings, None, messages, freshenv=True, warningiserror=True)
                sphinx.build()
            failed = bool(sphinx.statuscode)
        except SphinxError as error:
            failed = bool(messages.write(str(error)))
    if failed:
        raise ToolError(f"Sphinx does not accept {source}: {' '.join(messages.getvalue().split())[:600]}")
    (target / ".buildinfo").unlink(missing_ok=True)
    return target / f"{source.stem}.html"


def printed(page: Path, target: Path) -> Path:
    """Print a page into a folder as a tagged PDF; returns its file. Raises UsageError without Pango."""
    try:
        from weasyprint import HTML  # noqa: PLC0415  # a guide in HTML does without Pango
    except OSError as error:
        # WeasyPrint loads Pango when it is imported, and says how to install it, at length.
        reason = str(error).partition("\n")[0]
        raise UsageError(
            f"a PDF needs Pango ({reason}): apt-get install libpango-1.0-0 libpangoft2-1.0-0 "
            f"libharfbuzz-subset0"
        ) from None
    target.mkdir(parents=True, exist_ok=True)
    file = target / f"{page.stem}.pdf"
    HTML(page).write_pdf(file, pdf_variant="pdf/ua-1")
    return file


class Translator(HTML5Translator):
    """Tables in frames of their own, and figures in their parts."""

    def visit_table(self, node: nodes.table) -> None:
        """Open the frame that scrolls; its name is the table's, for screen readers."""
        name = html.escape(_name_of(node), quote=True)
        self.body.append(f'<div class="wide" role="group" tabindex="0" aria-label="{name}">')
        super().visit_table(node)

    def depart_table(self, node: nodes.table) -> None:
        """Close the frame."""
        super().depart_table(node)
        self.body.append("</div>\n")

    def visit_comment(self, node: nodes.Element, sub: object = None) -> None:  # docutils'
        """What a table was measured under, to be folded out."""
        guide, words = self.config.guide_conditions, node.astext().split()
        is_marked = guide and words[:1] == ["conditions:"]
        kept = conditions.read(Path(guide), Path(guide).read_text("utf-8")) if is_marked else None
        for board in words[2:] if kept else ():
            assert kept
            pairs = (tuple(map(html.escape, pair)) for pair in kept.lines(words[1], board))
            terms = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
            summary = f"<summary>Conditions on {html.escape(board)}</summary>"
            self.body.append(f'<details class="conditions">{summary}<dl>{terms}</dl></details>')
        raise nodes.SkipNode

    def visit_title(self, node: nodes.title) -> None:
        """The guide's own title is on the cover."""
        if isinstance(node.parent, nodes.section) and self.section_level == 1:
            raise nodes.SkipNode
        super().visit_title(node)

    def visit_Text(self, node: nodes.Text) -> None:  # noqa: N802  # docutils' name
        """The mean of a cell large, the rest small; the text stays what it is in the guide."""
        text = node.astext()
        match = _CELL.fullmatch(text) if _is_figure(node) else None
        if not match:
            super().visit_Text(node)
            return
        self.body.append(f'<span class="mean">{match["mean"]}</span>')
        for part in ("bounds", "unit", "change"):
            if part_text := match[part]:
                way = next((word for word in ("better", "worse") if word in part_text), "")
                self.body.append(f' <span class="{part} {way}">{html.escape(part_text.strip())}</span>')


def _name_of(table: nodes.table) -> str:
    """A table's caption, or the heading above it."""
    title = table.next_node(nodes.title)
    above: nodes.Element | None = table
    while title is None and above is not None:
        above = above.parent
        if isinstance(above, nodes.section):
            title = above.next_node(nodes.title)
    return title.astext() if title else "Table"


def _is_figure(node: nodes.Node) -> bool:
    """Whether a text is that of a cell behind the first of its row."""
    entry = node.parent.parent if node.parent else None
    if not isinstance(entry, nodes.entry) or not isinstance(entry.parent.parent, nodes.tbody):
        return False
    return entry.parent.index(entry) > 0


def _head_rows(app: Sphinx, doctree: nodes.document, _name: str) -> None:
    """The first cell of each row heads it."""
    for group in doctree.findall(nodes.tgroup):
        column = group.next_node(nodes.colspec)
        if column is not None:
            column["stub"] = 1


def _contents(section: nodes.Element, depth: int = 1) -> list[tuple[str, str, object]]:
    """The sections below one: name, title and the sections below each."""
    below = [child for child in section.children if isinstance(child, nodes.section)]
    return [
        (child["ids"][0], child.children[0].astext(), _contents(child, depth + 1))
        for child in (below if depth <= _DEEPEST else ())
    ]


def _add_context(
    app: Sphinx, _page: str, _template: str, context: dict[str, object], doctree: nodes.document | None
) -> None:
    context["look"] = look.inline(plots=False)
    context["cover"] = app.config.guide_cover
    top = doctree.next_node(nodes.section) if doctree else None
    context["contents"] = _contents(top) if top else []


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_config_value("guide_cover", {}, "html", dict)
    app.add_config_value("guide_conditions", "", "html", str)
    app.add_html_theme("guide", str(Path(__file__).parent / "theme"))
    app.set_translator("singlehtml", Translator)
    app.connect("doctree-resolved", _head_rows)
    app.connect("html-page-context", _add_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
