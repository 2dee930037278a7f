"""What boards, logs and old files say, on its way out: one function for each kind of outlet. A fact is kept
as it was said; where it is shown it is text. HTML escapes by its templates, on top of `plain`.
"""

import functools
import html as _html
import re
from collections.abc import Iterable

TEXT_LIMIT = 60_000
"""Bytes of a text field in line protocol; InfluxDB refuses more than 64 KiB."""

_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but new line and tab
    "\u200e\u200f\u2028-\u202e\u2066-\u2069"  # other line ends, other directions of writing
    "\ud800-\udfff\ufffe\uffff]"  # no characters: neither UTF-8 nor XML has them
)


def plain(text: str) -> str:
    """For terminals and XML 1.0: text of lines; characters that would do something there become U+FFFD."""
    return _UNSHOWN.sub("\ufffd", text.replace("\r\n", "\n"))


def line(text: str) -> str:
    """The same within one line."""
    return plain(text).replace("\n", " ").replace("\t", " ")


_MARKUP = re.compile(
    r"[\\`*\[\]<>|~@$&]"
    r"|[#!%^](?=[\w\[\"])"  # GitLab's references
    r"|(?<![^\W_])_|_(?![^\W_])"  # within a word it stays
    r"|:(?=//)|(?<=\bwww)\."  # addresses that become links by themselves
    r"|^(?:[-+=]+(?=\s|$)|[#/]|\d+(?=[.)]))"  # begins a list, a heading, GitLab's commands
)


def markdown(text: str) -> str:
    """For Markdown (GitLab's): text within one line, wherever it stands: also in a table's cell."""
    return _backslashed(_MARKUP, text)


def _backslashed(marks: re.Pattern[str], text: str) -> str:
    """A line whose marks have a backslash: before them, after numbers, which begin a list."""
    return marks.sub(
        lambda match: f"{match[0]}\\" if match[0][0].isdigit() else f"\\{match[0]}", line(text).strip()
    )


def row(cells: Iterable[str]) -> str:
    """A row of a Markdown table, of cells that are Markdown already."""
    return f"| {' | '.join(cells)} |"


def fenced(lines: Iterable[str]) -> list[str]:
    """For Markdown: a block of lines as they are; nothing in them ends the block. Some releases of
    GitLab look for commands between fences of more than three marks: no line begins with one.
    """
    shown = [f" {one}" if one.startswith("/") else one for one in map(line, lines)]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *shown, fence]


_ADDRESS = re.compile(r"https?://[^\s\"'<>\\]+|(?!//)[^\s\"'<>\\:]*(?:[/?#][^\s\"'<>\\]*)?", re.IGNORECASE)


def address(text: str) -> str:
    """For a link: an address of the web, or one relative to the page; "" for any other."""
    return text if _ADDRESS.fullmatch(text) and not _UNSHOWN.search(text) else ""


def html(text: str) -> str:
    """For HTML that no template makes."""
    return _html.escape(plain(text))


def script(json: str) -> str:
    """For a script of a page, or a script element: JSON in which no markup is seen."""
    return re.sub(f"[<>&]|{_UNSHOWN.pattern}", lambda match: f"\\u{ord(match[0]):04x}", json)


_ROLES = re.compile(r"[\\*`|<>@]|_(?!\w)|:(?=\S)|^(?:[-+=.:]|\d+(?=[.)]))")


def rst(text: str) -> str:
    """For reStructuredText: text within one line."""
    return _backslashed(_ROLES, text)


_SPECIAL = re.compile(r"([,= ])")
_UNSTORED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LONE = re.compile("[\ud800-\udfff]")


@functools.lru_cache(maxsize=10_000)
def tag_value(text: str) -> str:
    """For a tag in line protocol. What it cannot carry becomes a space; backslashes at the end,
    which would hide the comma behind them, are left out.
    """
    cleaned = _LONE.sub("?", _CONTROL.sub(" ", text))
    return _SPECIAL.sub(r"\\\1", cleaned.rstrip("\\"))


def text_field(text: str) -> str:
    """For a text field in line protocol, in its quotes, cut to TEXT_LIMIT. Of the control
    characters only new line and tab survive the way there and back; the others become spaces.
    """
    return _quoted(text) if len(text) > _SHORT else _quoted_short(text)


def _quoted(text: str) -> str:
    cut = text.encode("utf-8", "replace")[:TEXT_LIMIT].decode("utf-8", "ignore")
    return '"' + _UNSTORED.sub(" ", cut).replace("\\", "\\\\").replace('"', '\\"') + '"'


_SHORT = 200
_quoted_short = functools.lru_cache(maxsize=10_000)(_quoted)
"""Names come again and again; long texts would fill the memory."""
