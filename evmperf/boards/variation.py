"""One variation of a board: what an A/B changes, declared in words.

`image:FILE` is put on the board, `args:TEXT` joins the kernel's command line, `uboot:NAME=VALUE` is set
before each boot and never saved, `run:COMMAND` is run in Linux after each boot, `FILE.yaml` is a list of
these words, and `as-is` changes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError

AS_IS = "as-is"
_KINDS = ("image", "args", "uboot", "run")
_HELP = "as-is, image:FILE, args:TEXT, uboot:NAME=VALUE, run:COMMAND"
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_UNTYPEABLE = re.compile(r"['\r\n]")
"""What would end the quotes, or the line, in which U-Boot gets a value."""


@dataclass(frozen=True)
class Variation:
    """What is different; everything empty is the board as it is."""

    words: tuple[str, ...] = ()
    kernel_arguments: str = ""
    uboot: Mapping[str, str] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    image: str = ""

    def __str__(self) -> str:
        return ", ".join(self.words) or AS_IS

    def __bool__(self) -> bool:
        return bool(self.words)


def parse(words: Iterable[str], folder: Path = Path()) -> Variation:
    """The variation that words declare, with files of words below `folder`; raises UsageError."""
    pairs = list(_pairs(words, folder))
    images = [text for kind, text in pairs if kind == "image"]
    if len(images) > 1:
        raise UsageError("image: given twice in one variation; keep one")
    uboot = dict(_uboot_variable(text) for kind, text in pairs if kind == "uboot")
    arguments = " ".join(text for kind, text in pairs if kind == "args")
    if _UNTYPEABLE.search(arguments):
        raise UsageError(f"args:{arguments}: must have no single quote and no line break")
    return Variation(
        words=tuple(f"{kind}:{text}" for kind, text in pairs),
        kernel_arguments=arguments,
        uboot=uboot,
        commands=tuple(text for kind, text in pairs if kind == "run"),
        image="".join(images),
    )


def _pairs(words: Iterable[str], folder: Path) -> Iterator[tuple[str, str]]:
    for word in words:
        kind, colon, text = word.partition(":")
        if word == AS_IS:
            continue
        if colon and kind in _KINDS and text.strip():
            yield kind, text.strip()
        elif word.endswith((".yaml", ".yml")):
            words_of_file = yamlfile.read(file := folder / word)
            if not isinstance(words_of_file, list) or not all(isinstance(one, str) for one in words_of_file):
                raise UsageError(f"{file}: must be a list of words such as 'args:quiet' in quotes")
            if nested := [one for one in words_of_file if one.endswith((".yaml", ".yml")) and ":" not in one]:
                raise UsageError(f"{file}: {nested[0]}: a file of words cannot name another file")
            yield from _pairs(words_of_file, folder)
        else:
            raise UsageError(f"{word!r} is not a variation: write {_HELP}, or a YAML file of these")


def _uboot_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or _UNTYPEABLE.search(value):
        raise UsageError(f"uboot:{text}: write uboot:NAME=VALUE, without a single quote")
    return name, value
