"""What a panel asks, said once as data, in Flux (InfluxDB 2) and in SQL (InfluxDB 3): `languages.yaml`.

A query is a list of steps, each a mapping of its name to what it is given; a list among them is part of it.
Expressions are written in Python's syntax over the names of columns: `failed > 0 or refused > 0`.
`known(c, v)` is v where a column has nothing, `exists(c)` whether it has something, `one(v)` and
`several(v)` what is chosen of Grafana's variables, `begin()` and `end()` its range, `moment(c)` a
number of nanoseconds as a time, `age_h(c)` hours since. Columns are those of docs/results.md, `time`
among them, and `Value`, which is Grafana's word for the one figure of a row.
"""

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
import msgspec

from evmperf.boards import yamlfile

FLUX, SQL = "flux", "sql"


class _Headed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    head: str
    text: str


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One of `languages.yaml`, which describes the fields; `target` is Grafana's word for a query in it."""

    names: dict[str, str]
    column: str
    item: str
    literal: str
    escaped: dict[str, str]
    before: str
    target: str
    tags: list[str]
    forms: dict[str, str]
    steps: dict[str, str | _Headed]

    def asked(self, steps: Sequence[object]) -> str:
        """The text of a query; raises KeyError for a step that the language does not have."""
        head = text = ""
        for step in flat(steps):
            ((name, given),) = step.items()
            before = self.before.format(text)
            head, said = (
                part.render(given=given, head=head, before=before) for part in self._templates[name]
            )
            text = f"{text}\n{said}" if said.startswith("|>") else said
        return head + text

    def said(self, expression: str) -> str:
        """The text of an expression; raises KeyError for what is none."""
        return self._expression(_parsed(expression))

    @functools.cached_property
    def _templates(self) -> dict[str, list[jinja2.Template]]:
        """What is said of each step, and the head before it."""
        templates = jinja2.Environment(
            variable_start_string="<<",
            variable_end_string=">>",
            block_start_string="<%",
            block_end_string="%>",
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
        )
        templates.globals |= {
            "asked": self.asked,
            "said": self.said,
            "each": lambda conditions: list(map(self.said, flat(conditions))),
            "tags": lambda conditions: [one for one in flat(conditions) if self._of_tags(one)],
            "fields": lambda conditions: [one for one in flat(conditions) if not self._of_tags(one)],
            "columns": self._columns,
            "names": lambda names, after="": ", ".join(f'"{self._name(name)}"{after}' for name in names),
        }
        forms = {n: _Headed("<< head >>", s) if isinstance(s, str) else s for n, s in self.steps.items()}
        return {name: list(map(templates.from_string, (s.head, s.text))) for name, s in forms.items()}

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _columns(self, columns: Mapping[str, str]) -> str:
        return ", ".join(self.item.format(self._name(n), self.said(of)) for n, of in columns.items())

    def _of_tags(self, condition: str) -> bool:
        return set(re.findall(r"\br\.(\w+)", self.said(condition))) <= {*self.tags}

    def _expression(self, node: Any) -> str:
        parts: Sequence[Any]
        match node:
            case ast.Name(name):
                return self.column.format(self._name(name))
            case ast.Constant(str(text)):
                return self.literal.format("".join(self.escaped.get(c, c) for c in text))
            case ast.Constant(number):
                return str(number)
            case ast.Call(ast.Name("one" | "several" as form), [ast.Name(variable)]):
                return self.forms[form].format(variable)
            case ast.Call(ast.Name(form), parts):
                pass
            case ast.Compare(left, [operator], [right]):
                form, parts = type(operator).__name__, (left, right)
            case ast.BoolOp(operator, parts):
                form = type(operator).__name__
            case ast.BinOp(left, operator, right):
                form, parts = type(operator).__name__, (left, right)
            case ast.IfExp(test, body, orelse):
                form, parts = "IfExp", (test, body, orelse)
            case _:
                form, parts = type(node).__name__, node.elts
        return self.forms[form].format(*map(self._expression, parts))


@functools.cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def flat(steps: Any) -> Iterator[Any]:
    """The steps of a query, those of its parts among them."""
    for step in steps:
        yield from flat(step) if isinstance(step, list) else [step]


LANGUAGES = msgspec.convert(yamlfile.own("publish/grafana/languages.yaml"), dict[str, Language])
