"""Reading YAML files of users: one loader, and one sentence for what is wrong with a file."""

import contextlib
from pathlib import Path
from typing import Any

import yaml

from evmperf.model import inputs, limits
from evmperf.model.errors import UsageError

NESTING_SAFE_CHARS = 8_000
"""libyaml overflows its stack, which ends the process, from some 20 000 levels of nesting on: a
longer text is read in Python, ten times as slow.
"""
_MOST_VALUES = 100_000
"""Of a file with aliases: each file within `limits` that says its values itself has fewer."""
QUICK: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML in C, where the installed package has it."""


class _Words(yaml.constructor.SafeConstructor):
    """Safe YAML that leaves Labgrid's tags (`!template`, `!include`) as the text they carry, and
    raises for a key that stands twice, of which YAML's own loader takes the last.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        """The mapping; raises ConstructorError with the line of a second key."""
        mapping: dict[object, object] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            seen = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"duplicate key {key!r}", key_node.start_mark
                    )
                seen.add(key)
        return mapping


_Words.add_multi_constructor("!", lambda loader, suffix, node: node.value)


class _Loader(_Words, yaml.SafeLoader):
    pass


_QuickLoader: Any = type("_QuickLoader", (_Words, QUICK), {})


def own(place: str) -> Any:
    """The data of a file that comes with evmperf, by its place in the package."""
    return read(Path(__file__).parents[1] / place)


def read(file: Path) -> Any:
    """The data of a file; raises UsageError with the file, the line and the cause."""
    try:
        text = inputs.text(file, limits.YAML_BYTES)
        data = _loaded(text)
        if "*" in text:
            _counted(data)
        return data
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        cause = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UsageError(f"{file}{line}: is not YAML: {cause}") from error


def _loaded(text: str) -> Any:
    if len(text) <= NESTING_SAFE_CHARS:
        with contextlib.suppress(yaml.YAMLError):  # the other loader names the place better
            return yaml.load(text, Loader=_QuickLoader)
    return yaml.load(text, Loader=_Loader)


def _counted(part: object, count: int = 0) -> int:
    """Count the values of data with aliases; raises ValueError for too many, RecursionError for a circle."""
    if count > _MOST_VALUES:
        raise ValueError(f"its aliases make more than {_MOST_VALUES} values of it")
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for value in values:
        count = _counted(value, count + 1)
    return count
