"""Settings of Sphinx for `make docs`: these pages as a site with search."""

import re

project = "evmperf"
extensions = ["myst_parser"]
root_doc = "README"
exclude_patterns = ["pictures"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "description": "Performance lab for TI evaluation modules"}
html_show_copyright = False
myst_heading_anchors = 4
myst_links_external_new_tab = True
suppress_warnings = ["myst.header"]

# The index is a list of links for readers on GitLab; Sphinx wants it as a table of contents.
_SECTION = re.compile(r"^## (.+)\n\n((?:\* .*\n(?:  .*\n)*)+)", re.MULTILINE)
_PAGE = re.compile(r"\]\(([\w-]+)\.md\)")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)[^)]*\)")


def _contents(app, docname, source):
    """Append a hidden table of contents of each section to the index; name files outside docs/."""
    source[0] = _OUTSIDE.sub(r"\1 (`\2`)", source[0])
    if docname == root_doc:
        for title, pages in _SECTION.findall(source[0]):
            rows = "\n".join(_PAGE.findall(pages))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{rows}\n```\n"


def setup(app):
    """Connect the table of contents."""
    app.connect("source-read", _contents)
    return {"parallel_read_safe": True}
