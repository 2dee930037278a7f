"""Reading YAML files of users: one loader, and one sentence for what is wrong with a file."""

from pathlib import Path
from typing import Any

import yaml

from evmperf.model.errors import UsageError


class Loader(yaml.SafeLoader):
    """Safe YAML that leaves Labgrid's tags (`!template`, `!include`) as the text they carry, and
    raises for a key that stands twice, of which YAML's own loader takes the last.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises ConstructorError with the line of a second key."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
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


Loader.add_multi_constructor("!", lambda loader, suffix, node: node.value)


def read(file: Path) -> Any:
    """The data of a file; raises UsageError with the file, the line and the cause."""
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=Loader)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        cause = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UsageError(f"{file}{line}: is not YAML: {cause}") from error
