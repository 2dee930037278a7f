"""A board as its file in `env/` describes it, checked against the vocabulary."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evmperf.boards.vocabulary import ABSENT, FEATURES, OPTIONS, REQUIRED
from evmperf.model.errors import UsageError

ENV_DIR = Path(__file__).resolve().parents[2] / "env"
"""Where the board files are, unless a path says otherwise."""

_WHERE = "targets.main"


@dataclass(frozen=True)
class Board:
    """One EVM: features (its drivers) and options, by section."""

    file: Path
    features: frozenset[str]
    options: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The board's name in guides, results and databases."""
        return str(self.options["board"]["name"])

    @property
    def file_name(self) -> str:
        """The file as a person would type it."""
        return self.file.name

    @property
    def is_virtual(self) -> bool:
        """Whether figures of this board are a virtual EVM's, kept apart from real ones."""
        return self.option("board", "virtual") is not None

    @property
    def tester(self) -> str:
        """SSH name of the machine beside the board, "" if nobody says: $EVMPERF_TESTER, because a
        file describes all boards of its kind, and else what the file says.
        """
        return os.environ.get("EVMPERF_TESTER") or str(self.option("tester", "host", ""))

    def option(self, section: str, key: str, default: Any = None) -> Any:
        """One option, or `default` where the file does not say."""
        return self.options.get(section, {}).get(key, default)


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
                        None,
                        None,
                        f"the key {key!r} stands here a second time: keep one",
                        key_node.start_mark,
                    )
                seen.add(key)
        return mapping


Loader.add_multi_constructor("!", lambda loader, suffix, node: node.value)


def names(folder: Path = ENV_DIR) -> list[str]:
    """File names of all boards there are."""
    return sorted(path.name for path in folder.glob("*.yaml"))


def find(given: str, folder: Path = ENV_DIR) -> Path:
    """The board file meant by `given`: a path as it is, or a name in `env/`, with or without .yaml.

    Raises UsageError naming the files there are.
    """
    for candidate in (Path(given), folder / given, folder / f"{given}.yaml"):
        if candidate.is_file():
            return candidate
    near = difflib.get_close_matches(Path(given).name, names(folder), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(
        f"no board file {given}, neither here nor in {folder}{hint} "
        f"There are: {', '.join(names(folder))}."
    )


def load(file: Path) -> Board:
    """Read and check a board file; raises UsageError that names the file and the word."""
    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=Loader)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        raise UsageError(f"{file}{line}: is not YAML: {_first_line(error)}") from error
    main = _main_target(file, data)
    features = main.get("features") or []
    if not isinstance(features, list):
        raise UsageError(f"{file}: {_WHERE}.features must be a list of drivers")
    for feature in features:
        check_word(file, f"{_WHERE}.features", str(feature), FEATURES)
    options = main.get("options") or {}
    _check_options(file, options)
    return Board(file=file, features=frozenset(features), options=options)


def _main_target(file: Path, data: Any) -> dict[str, Any]:
    try:
        main = data["targets"]["main"]
    except (KeyError, TypeError):
        main = None
    if not isinstance(main, dict):
        raise UsageError(f"{file}: has no {_WHERE}; copy one of the files in {ENV_DIR}")
    return main


def _check_options(file: Path, options: Any) -> None:
    if not isinstance(options, dict):
        raise UsageError(f"{file}: {_WHERE}.options must be a mapping")
    for section, entries in options.items():
        where = f"{_WHERE}.options"
        check_word(file, where, str(section), OPTIONS)
        if not isinstance(entries, dict):
            raise UsageError(f"{file}: {where}.{section} must be a mapping")
        if section == ABSENT:
            _check_absent(file, f"{where}.{section}", entries)
            continue
        for key, value in entries.items():
            check_word(file, f"{where}.{section}", str(key), OPTIONS[section])
            option = OPTIONS[section][key]
            if type(value) is not option.type:
                raise UsageError(
                    f"{file}: {where}.{section}.{key} must be of type {option.type.__name__} "
                    f"({option.help}), not {value!r}"
                )
            if option.choices and value not in option.choices:
                raise UsageError(
                    f"{file}: {where}.{section}.{key} must be one of "
                    f"{', '.join(option.choices)}, not {value!r}"
                )
    for section, key in REQUIRED:
        if key not in options.get(section, {}):
            raise UsageError(
                f"{file}: {_WHERE}.options.{section}.{key} is missing: {OPTIONS[section][key].help}"
            )


def _check_absent(file: Path, where: str, entries: Mapping[Any, Any]) -> None:
    for word, reason in entries.items():
        if not isinstance(reason, str):
            raise UsageError(f"{file}: {where}.{word} must be the reason, as one sentence")


def check_word(file: Path, where: str, word: str, vocabulary: Iterable[str]) -> None:
    """Raise UsageError, which names the file and the nearest word, unless a word is known."""
    if word in vocabulary:
        return
    known = sorted(vocabulary)
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
    raise UsageError(f"{file}: {where}: unknown word {word!r}; {hint}")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n")[:1])
