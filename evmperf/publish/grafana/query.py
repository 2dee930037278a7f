"""What a panel asks of InfluxDB 2, said once as data; `flux.yaml` has the text of each step.

A query is a list of steps, each a mapping of its name to what it is given; a list among them is part of it.
Conditions and columns are Flux over a row `r`, whose columns are those of docs/results.md and `_time`, and
`_value`, the one figure of a row.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2

from evmperf.boards import yamlfile

_TAGS = (
    *("_measurement", "board", "kind", "lab", "os", "place", "profile", "release", "driver", "benchmark"),
    *("case", "metric", "goal", "phase"),
)
"""Columns that are filtered before fields are put side by side."""


def asked(steps: Sequence[object]) -> str:
    """The text of a query; raises KeyError for a step that there is not."""
    head = text = ""
    for step in flat(steps):
        ((name, given),) = step.items()
        head, part_text = (part.render(given=given, head=head, before=text) for part in _templates()[name])
        text = f"{text}\n{part_text}" if part_text.startswith("|>") else part_text
    return head + text


def flat(steps: Any) -> Iterator[Any]:
    """The steps of a query, those of its parts among them."""
    for step in steps:
        yield from flat(step) if isinstance(step, list) else [step]


@functools.cache
def _templates() -> dict[str, list[jinja2.Template]]:
    """The head of each step, and its text."""
    templates = jinja2.Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    templates.globals |= {
        "asked": asked,
        "flat": lambda conditions: list(flat(conditions)),
        "tags": lambda conditions: [one for one in flat(conditions) if _of_tags(one)],
        "fields": lambda conditions: [one for one in flat(conditions) if not _of_tags(one)],
        "columns": _columns,
        "names": lambda names: ", ".join(f'"{name}"' for name in names),
    }
    forms = yamlfile.own("publish/grafana/flux.yaml")
    parts = {
        name: {"head": "<< head >>", "text": form} if isinstance(form, str) else form
        for name, form in forms.items()
    }
    return {
        name: [templates.from_string(part[word]) for word in ("head", "text")] for name, part in parts.items()
    }


def _columns(columns: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}": {of}' for name, of in columns.items())


def _of_tags(condition: str) -> bool:
    return set(re.findall(r"\br\.(\w+)", condition)) <= {*_TAGS}
