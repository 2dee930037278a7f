"""A guide as a web page, through Sphinx, and as PDF, printed from that page by WeasyPrint.

Any warning of Sphinx is an error.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evmperf.guide import conditions
from evmperf.model.errors import ToolError, UsageError


@dataclass(frozen=True)
class Cover:
    """What the first page says of the guide."""

    title: str
    os: str
    release: str
    boards: Sequence[tuple[str, str]] = ()
    """Name and description."""
    facts: Sequence[str] = ()
    """Sentences: where the figures are from, when they were measured, what they are held against."""


def build(source: Path, target: Path, cover: Cover) -> Path:
    """Build the page of the guide `source` in the folder `target`; returns the file to open.

    Raises ToolError with Sphinx's words when it warns or fails.
    """
    target.mkdir(parents=True, exist_ok=True)
    settings = {
        "extensions": "evmperf.guide.sphinxpage",
        "project": cover.title,
        "root_doc": source.stem,
        # Nothing else in the folder is of the guide.
        "include_patterns": source.name,
        "html_theme": "guide",
        "guide_cover": json.dumps(asdict(cover)),
        "guide_conditions": str(source) if conditions.beside(source).is_file() else "",
        "highlight_language": "none",
        # What stands in the guide stays as it is.
        "smartquotes": "0",
    }
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-C"]
    for key, value in settings.items():
        command += ["-D", f"{key}={value}"]
    with tempfile.TemporaryDirectory(prefix="evmperf-guide-") as scratch:
        # Sphinx's notes are of no use to readers of the folder.
        command += ["-b", "singlehtml", "-d", scratch, str(source.parent), str(target)]
        # What was copied from somebody's guide brings no markup and no file into the page.
        rules = Path(scratch) / "docutils.conf"
        rules.write_text("[general]\nraw_enabled: no\nfile_insertion_enabled: no\n", "utf-8")
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "DOCUTILSCONFIG": str(rules)},
        )
    if done.returncode:
        # Sphinx gives its reason first and a traceback after it.
        said = " ".join((done.stderr or done.stdout).split())
        raise ToolError(f"Sphinx does not accept {source}: {said[:600]}")
    built = target / f"{source.stem}.html"
    (target / ".buildinfo").unlink(missing_ok=True)
    return built


def printed(page: Path, target: Path) -> Path:
    """Print a page into the folder `target`, as a tagged PDF; returns the file.

    Raises UsageError where the system lacks the library that sets WeasyPrint's text.
    """
    try:
        from weasyprint import HTML  # noqa: PLC0415  # slow to import
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
