"""A guide as web pages and as PDF, through Sphinx. Any warning of Sphinx is an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evmperf.model.errors import ToolError

_PDF_STYLE = """\
pageSetup: {margin-left: 1.2cm, margin-right: 1.2cm}
styles: {base: {fontSize: 8}, bodytext: {fontSize: 8}}
"""
_PDF_CONF = """\
extensions = ["rst2pdf.pdfbuilder"]
pdf_documents = [({stem!r}, {stem!r}, {title!r}, "evmperf")]
pdf_stylesheets = ["a4-landscape", "guide"]
pdf_style_path = ["."]
pdf_use_index = pdf_use_modindex = False
"""


def build(source: Path, target: Path, title: str, pdf: bool = False) -> Path:
    """Build the pages (or the PDF) of the guide `source`; returns the file to open.

    Raises ToolError with Sphinx's words when it warns or fails.
    """
    target.mkdir(parents=True, exist_ok=True)
    settings = {
        "project": title,
        "root_doc": source.stem,
        "html_theme": "alabaster",
        "html_show_copyright": "0",
        "html_theme_options.page_width": "95%",
    }
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E"]
    if pdf:
        folder = source.parent
        (folder / "guide.yaml").write_text(_PDF_STYLE, encoding="utf-8")
        conf = _PDF_CONF.format(stem=source.stem, title=title)
        (folder / "conf.py").write_text(conf, encoding="utf-8")
        command += ["-b", "pdf"]
    else:
        command += ["-C", "-b", "html"]
    for key, value in settings.items():
        command += ["-D", f"{key}={value}"]
    done = subprocess.run(
        [*command, str(source.parent), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        # Sphinx gives its reason first and a traceback after it.
        said = " ".join((done.stderr or done.stdout).split())
        raise ToolError(f"Sphinx does not accept {source}: {said[:600]}")
    built = target / f"{source.stem}.{'pdf' if pdf else 'html'}"
    if not built.is_file() or not built.stat().st_size:
        raise ToolError(f"Sphinx made no {built}: {' '.join(done.stderr.split())[:600]}")
    return built
