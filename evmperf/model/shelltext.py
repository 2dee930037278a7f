"""Shell text in files beside the modules that send it to a machine."""

import re
import string
from pathlib import Path


class _Text(string.Template):
    delimiter = "@"


class ShellTexts:
    """The texts in the `.sh` file beside a module, by name.

    A line `#: NAME` begins a text; other lines of comment are for readers. Lines are sent as one, because a
    console answers each with a prompt: all but a text's last end with `;` where the shell needs a separator.
    `@NAME` is a value or another text of the file, `@@` an @.
    """

    def __init__(self, module: str) -> None:
        text = Path(module).with_suffix(".sh").read_text(encoding="utf-8")
        _, *parts = re.split(r"^#: (\w+)\n", re.sub(r"(?m)^ *#[^:].*\n", "", text), flags=re.MULTILINE)
        self._texts = {
            name: _Text(" ".join(filter(None, map(str.strip, lines.splitlines()))).removesuffix(";"))
            for name, lines in zip(parts[::2], parts[1::2], strict=True)
        }

    def __call__(self, name: str, /, **values: object) -> str:
        """A text with its values; raises KeyError for a missing one."""
        return self._texts[name].substitute(_Values(self._texts, values))


class _Values(dict[str, object]):
    def __init__(self, texts: dict[str, _Text], values: dict[str, object]) -> None:
        super().__init__(values)
        self._texts = texts

    def __missing__(self, name: str) -> str:
        return self._texts[name].substitute(self)
