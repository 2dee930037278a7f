"""A board file against Labgrid: imports, templates, classes, attributes, bindings, strategy.

Labgrid says these things one at a time, when a board is about to be measured. Nothing here talks to a board
or to a coordinator.
"""

import difflib
import inspect
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import attr
from labgrid import Environment, target_factory
from labgrid.driver import ShellDriver, SSHDriver
from labgrid.exceptions import InvalidConfigError
from labgrid.resource import Resource
from labgrid.strategy import Strategy
from labgrid.util.yaml import load
from yaml import YAMLError

from evmperf.boards.board import KEY, Board, check_word, classes
from evmperf.boards.copying import FILL_IN
from evmperf.boards.options import MAPPINGS
from evmperf.boards.vocabulary import FEATURES, sections
from evmperf.lab import console, guest, media, meter, probe, shell
from evmperf.lab.bootoptions import BoardState
from evmperf.lab.keeping.wanted import variables
from evmperf.lab.strategy import BootStrategy
from evmperf.model.errors import UsageError, one_line

_FILE = ("imports", "targets", "options", "features", "images", "tools", "paths")
_WHOLE_DISK = re.compile(r"/dev/(mmcblk\d+(boot\d+)?|nvme\d+n\d+|[hsv]d[a-z]+)")
_TARGET = ("features", "options", "resources", "drivers", KEY)
_OURS = tuple(module.__name__ for module in (console, media, meter, probe, shell))

_REMOTE = "RemotePlace"
_KINDS = {"resources": target_factory.resources, "drivers": target_factory.drivers}
"""Labgrid's classes by their name."""


@dataclass
class Checked:
    """What was found in a board file, a sentence each."""

    mistakes: list[str] = field(default_factory=list)
    """What keeps the board from being measured at all."""
    remarks: list[str] = field(default_factory=list)
    """What Labgrid or evmperf leaves out, and words that may be misspelt."""
    strategy: str = ""
    """The strategy, and how it is driven."""


def check(board: Board) -> Checked:
    """Check a board's file against Labgrid; raises UsageError if it is unreadable."""
    file, found = board.file, Checked()
    try:
        with file.open(encoding="utf-8") as stream, warnings.catch_warnings():
            warnings.simplefilter("error")
            data: dict[str, Any] = load(stream)
    except (YAMLError, UserWarning) as error:
        raise UsageError(f"{file}: Labgrid cannot read it: {one_line(error)}") from error
    found.remarks += _words(board, data)
    found.mistakes += [*_unfilled(file), *_templates(file, data), *_whole_disks(board)]
    if found.mistakes:
        return found
    imports = [str(name) for name in data.get("imports") or ()]
    try:
        names = {name for template in _in_templates(data) for name in template.get_identifiers()}
        with variables({name: "checked" for name in names if name not in os.environ}):
            environment = Environment(str(file))
            found.remarks += _missing(board, imports)
            guest.adapt(environment.config, board)
    except InvalidConfigError as error:
        found.mistakes.append(f"{file}: {one_line(error)}")
        return found
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever an imported module raises
        found.mistakes.append(
            f"{file}: imports {', '.join(imports)}: {type(error).__name__}: {one_line(error)}"
        )
        return found
    main = environment.config.data["targets"][board.target]
    resources, drivers = classes(main.get("resources")), classes(main.get("drivers"))
    for (kind, registered), entries in zip(_KINDS.items(), (resources, drivers), strict=True):
        for name, arguments in entries:
            where = f"{file}: targets.{board.target}.{kind}.{name}"
            for sentence, is_fatal in _attributes(where, registered[name], arguments):
                (found.mistakes if is_fatal else found.remarks).append(sentence)
    found.mistakes += _bindings(file, board.target, resources, drivers)
    found.mistakes += _ways(board, drivers)
    if not found.mistakes:
        _judge_strategy(board, drivers, found)
    return found


def _whole_disks(board: Board) -> Iterator[str]:
    """A disk's name as `scratch`, without the word for it."""
    for section, options in board.sections.items():
        name = str(options.get("scratch", ""))
        if _WHOLE_DISK.fullmatch(name) and not options.get("whole_disk"):
            yield (
                f"{board.file}: {section}.scratch is {name}, a whole disk: name a partition, or set "
                f"{section}.whole_disk: true if all of it may be overwritten"
            )


def _words(board: Board, data: Mapping[str, Any]) -> Iterator[str]:
    """Words that nobody reads, and labels of the lab's that look like a feature."""
    main, where = data["targets"][board.target], f"targets.{board.target}"
    for place, words, known in (("the file", data, _FILE), (where, main, _TARGET)):
        for word in words:
            try:
                check_word(board.file, place, str(word), known)
            except UsageError as error:
                yield str(error)
    own: dict[str, tuple[frozenset[str], Sequence[str]]] = {"features": (board.labels, list(FEATURES))}
    if isinstance(options := main.get("options"), dict) and "board" in board.sections:
        own["options"] = (frozenset(map(str, options)) - {*sections(), *MAPPINGS}, (*sections(), *MAPPINGS))
    for place, (labels, vocabulary) in own.items():
        for word in sorted(labels):
            if near := difflib.get_close_matches(word, vocabulary, n=1):
                label = f"{word!r} is a word of the lab's, which evmperf leaves alone"
                yield f"{board.file}: {where}.{place}: {label}; did you mean {near[0]!r}?"


def _unfilled(file: Path) -> Iterator[str]:
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if FILL_IN in line.partition("#")[0]:
            yield f"{file}: line {number} is not filled in: {line.strip()}"


def _missing(board: Board, imports: Sequence[str]) -> Iterator[str]:
    """Classes that Labgrid does not know, or not by this file's imports."""
    for kind, registered in _KINDS.items():
        where = f"{board.file}: targets.{board.target}.{kind}"
        for name in getattr(board, kind):
            module = registered[name].__module__ if name in registered else ""
            if not module:
                yield f"{where}: {_unknown(name, registered)} It is left out."
            elif module in _OURS and module not in imports:
                yield f"{where}: {name} needs {module} among the imports where evmperf is not in the call"


def _in_templates(data: Any) -> Iterator[Template]:
    if isinstance(data, Template):
        yield data
    elif isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _in_templates(item)


def _templates(file: Path, data: Any) -> Iterator[str]:
    for template in _in_templates(data):
        if not template.is_valid():
            yield f"{file}: !template {template.template}: write $NAME or ${{NAME}}, and $$ for a $"
        for name in template.get_identifiers() if template.is_valid() else ():
            if name != "BASE" and not name.startswith("LG_"):
                yield (
                    f"{file}: !template {template.template}: Labgrid fills in $BASE and variables "
                    f"whose names begin with LG_, and not ${name}"
                )


def _unknown(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*names, "K3BootStrategy", "BootStrategy"], n=1)
    if near == [name]:
        return f"{name} needs evmperf.lab.strategy among the imports"
    hint = f"; did you mean {near[0]}?" if near else "; is its module among the imports?"
    return f"Labgrid knows no class {name!r}{hint}"


def _attributes(where: str, cls: Any, arguments: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Mistakes in attributes, and whether Labgrid refuses them."""
    fields = {
        field.name: field for field in attr.fields(cls) if field.init and field.name not in ("target", "name")
    }
    for word, value in arguments.items():
        if word in ("name", "bindings", "cls"):
            continue
        if word not in fields:
            near = difflib.get_close_matches(str(word), fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(fields))}."
            yield f"{where}: there is no attribute {word!r}; {hint}", False
            continue
        field = fields[word]
        try:
            converted = field.converter(value) if callable(field.converter) else value
            if field.validator and not isinstance(value, Template):
                field.validator(None, field, converted)
        except Exception as error:  # noqa: BLE001  # a validator may raise anything
            text = error.args[0] if error.args else type(error).__name__
            yield f"{where}.{word}: {one_line(text)}", True
    for name, field in fields.items():
        if field.default is attr.NOTHING and name not in arguments:
            yield f"{where}.{name} is missing", True


_Entries = list[tuple[str, Mapping[str, object]]]


def _bindings(file: Path, target: str, resources: _Entries, drivers: _Entries) -> Iterator[str]:
    """Drivers for which nothing that stands before them supplies what they bind."""
    remote = any(name == _REMOTE for name, _ in resources)
    predecessors: list[type] = [target_factory.resources[name] for name, _ in resources]
    for name, _ in drivers:
        cls = target_factory.drivers[name]
        for what, binding in cls.bindings.items():
            plain = getattr(binding, "value", binding)
            suppliers = plain if isinstance(plain, set) else {plain}
            if None in suppliers:
                continue
            wants = [target_factory.class_from_string(s) if isinstance(s, str) else s for s in suppliers]
            if remote and any(issubclass(want, Resource) for want in wants):
                continue  # the coordinator knows what the place has
            if not any(issubclass(have, want) for have in predecessors for want in wants):
                names = " or ".join(sorted(want.__name__ for want in wants))
                yield f"{file}: targets.{target}.drivers.{name}: no {names} precedes it ({what})"
        predecessors.append(cls)


def _ways(board: Board, drivers: _Entries) -> Iterator[str]:
    """That there is no way to the board."""
    kinds = [target_factory.drivers[name] for name, _ in drivers]
    if not any(issubclass(kind, ShellDriver | SSHDriver) for kind in kinds):
        yield (
            f"{board.file}: targets.{board.target}.drivers: nothing reaches the board's Linux: add a "
            f"ShellDriver on a serial port, or an SSHDriver; until then nothing can be measured"
        )


def _judge_strategy(board: Board, drivers: _Entries, found: Checked) -> None:
    """Say how the strategy is driven, or why it would fail at its first call."""
    names = [name for name, _ in drivers if issubclass(target_factory.drivers[name], Strategy)]
    if len(names) > 1:
        found.mistakes.append(f"{board.file}: {', '.join(names)} are several strategies: keep one")
        return
    (name,) = names
    kind = target_factory.drivers[name]
    if issubclass(kind, BootStrategy):
        found.strategy = f"{name}, evmperf's own" + ("" if name in board.drivers else " (the file has none)")
        return
    known = guest.states(kind)
    if not known[BoardState.shell]:
        found.mistakes.append(
            f"{board.file}: {name} has no state called shell or linux, so evmperf cannot ask it for Linux: "
            f"name one so, or use K3BootStrategy"
        )
        return
    parameters = list(inspect.signature(kind.transition).parameters.values())[2:]
    if wanted := [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]:
        found.mistakes.append(f"{board.file}: {name}.transition wants {', '.join(wanted)} beside a state")
        return
    states = ", ".join(word for word in known.values() if word)
    found.strategy = f"{name}, the lab's own, asked for {states}"
