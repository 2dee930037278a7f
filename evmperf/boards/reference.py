"""The options of a board file as a table for docs/add-a-board.md."""

import inspect
from collections.abc import Iterator

from evmperf.boards.optionlist import known, sections

BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
"""Between which lines the page has it."""


def table() -> str:
    """Markdown: a line an option, by section."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| section | option | meaning |"
    yield "|---|---|---|"
    for name, section in sections().items():
        about = (inspect.getdoc(section) or "").rstrip(".")
        yield f"| **`{name}`** | | {about} |"
        for key, option in known(section).items():
            choices = ", ".join(f"`{choice}`" for choice in option.choices)
            more = [f"one of {choices}"] if choices else []
            more += [f"default `{option.default}`"] if option.default else []
            more += ["required"] if option.required else []
            tail = f" ({'; '.join(more)})" if more else ""
            yield f"| | `{key}` ({option.yaml_type}) | {option.help}{tail} |"


def page(text: str) -> str:
    """The page with the table as it is now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}{END}{tail}"
