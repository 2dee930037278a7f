"""One board through the years: guides rename boards, and lists of modules call them otherwise."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from evmperf.boards import yamlfile


@functools.lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """A text's words, for comparing: without case, underscores, punctuation and runs of blanks."""
    return " ".join(re.sub(r"[^a-z0-9]+", " ", text.lower()).split())


def names() -> frozenset[str]:
    """Board names that TI prints."""
    return frozenset(_data()) | frozenset(_boards("names"))


def board(name: str) -> str:
    """The name of a board by which it goes today; a name that is not known stays what it is."""
    return _boards("names").get(name, name)


def same(one: str, other: str) -> bool:
    """Whether two names are of one board."""
    return board(one) == board(other)


@functools.lru_cache(maxsize=4096)
def of_module(text: str) -> str:
    """The board that a list of evaluation modules or a heading means; "" for none."""
    return called().get(plain(text), "")


@functools.cache
def called() -> Mapping[str, str]:
    """The boards by the words for them: their names, and those of their modules."""
    by_name = {plain(name): board(name) for name in names()}
    return by_name | {plain(module): name for module, name in _boards("modules").items()}


@functools.cache
def _boards(key: str) -> Mapping[str, str]:
    return {other: name for name, entry in _data().items() for other in entry.get(key, ())}


@functools.cache
def _data() -> dict[str, dict[str, Any]]:
    data: dict[str, dict[str, Any]] = yamlfile.own("judge/published/boards.yaml")
    return data
