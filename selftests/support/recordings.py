"""Recorded tool outputs (`data/<tool>/<name>.txt`) and what is expected of them (`.json`).

A `.json` names the parser (and an attribute or item of what it gives, which is called with `of`, if
any), its further arguments, and either the
`expected` value (an object where the parser gives a dataclass) or what the message of the refusal
must match. `texts` are the recordings, by default the one of the same name;
`edit` damages the last of them at each place in `at`: `cut` keeps so many characters, `kernel line`
puts a line of the kernel's after so many lines, `kernel text` after so many characters, and
`twice` has the whole text come twice.
"""

import dataclasses
import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
OTHERS = ("consoles", "state", "texts")
"""Folders that no parser of a tool reads: the boot strategy's, those of boards' state and of sessions."""
KERNEL_LINE = "[  123.456789] mmc0: error -110\n"


@dataclass(frozen=True)
class Recording:
    """One call of a parser: `expected` or, when that is None, `refused`."""

    name: str
    parser: str
    texts: tuple[str, ...]
    arguments: tuple
    expected: float | str | dict | list | None
    refused: str
    edited: bool
    of: tuple = ()

    @property
    def short(self):
        """The parser without its package, as `dd:throughput`."""
        return re.sub(r"^evmperf\.benchmarks\.\w+\.", "", self.parser)

    def parse(self, *texts):
        """Call the parser, on other texts if some are given."""
        module, function = self.parser.split(":")
        function, _, attribute = function.partition(".")
        value = getattr(importlib.import_module(module), function)(*(texts or self.texts), *self.arguments)
        if attribute:
            named = value[attribute] if isinstance(value, dict) else None
            value = value[int(attribute)] if attribute.isdigit() else named or getattr(value, attribute)
        value = value(*self.of) if self.of else value
        if dataclasses.is_dataclass(value):
            return dataclasses.asdict(value)
        return list(value) if isinstance(value, tuple) else value


def approximately(expected):
    """What a parsed value is compared with: the last bits of a floating-point number may differ."""
    if isinstance(expected, list) and expected and isinstance(expected[0], tuple):
        return [(name, pytest.approx(number, rel=1e-9)) for name, number in expected]
    numbers = list(expected.values()) if isinstance(expected, dict) else expected
    numbers = numbers if isinstance(numbers, list) else [numbers]
    if all(type(number) in (int, float) for number in numbers):
        return pytest.approx(expected, rel=1e-9)
    return expected


def all_recordings():
    tools = [path for path in sorted(DATA.glob("*/*.json")) if path.parent.name not in OTHERS]
    return [recording for path in tools for recording in _load(path)]


def good_recordings(parser):
    """Untouched recordings that hold a number."""
    return [r for r in all_recordings() if r.parser == parser and r.refused == "" and not r.edited]


def cut(text, at):
    return text[:at]


def kernel_line(text, at):
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:at], KERNEL_LINE, *lines[at:]])


def kernel_text(text, at):
    return text[:at] + KERNEL_LINE + text[at:]


def twice(text, _):
    return f"{text}\n{text}"


_EDITS = {"cut": cut, "kernel line": kernel_line, "kernel text": kernel_text, "twice": twice}


def _load(path):
    data = json.loads(path.read_text())
    names = data.get("texts", [f"{path.stem}.txt"])
    texts = [(path.parent / name).read_text() for name in names]
    name = f"{path.parent.name}/{path.stem}"
    places = data.get("at", [None])
    for at in places:
        last = texts[-1] if at is None else _EDITS[data["edit"]](texts[-1], at)
        yield Recording(
            name=name if at is None else f"{name}@{at}",
            parser=data["parser"],
            texts=(*texts[:-1], last),
            arguments=tuple(data["arguments"]),
            expected=data.get("expected"),
            refused=data.get("refused", ""),
            edited=at is not None,
            of=tuple(data.get("of", ())),
        )
