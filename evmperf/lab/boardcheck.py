"""A board file against Labgrid: imports, templates, classes, attributes, bindings, strategy.

Labgrid itself says these things one at a time, when a board is about to be measured, and leaves
out an attribute that it does not know. Nothing here talks to a board or to a coordinator.
"""

import contextlib
import difflib
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import attr
from labgrid import Environment, target_factory
from labgrid.driver import ShellDriver, SSHDriver, UBootDriver
from labgrid.exceptions import InvalidConfigError, RegistrationError
from labgrid.protocol import ConsoleProtocol
from labgrid.resource import Resource
from labgrid.strategy import Strategy
from labgrid.util.yaml import load
from yaml import YAMLError

from evmperf.boards.board import check_word, classes
from evmperf.boards.copying import FILL_IN
from evmperf.lab import console, media, meter, probe, shell
from evmperf.model.errors import UsageError, one_line

_FILE = ("imports", "targets", "options", "features", "images", "tools", "paths")
_TARGET = ("features", "options", "resources", "drivers")
_WHERE = "targets.main"
_OURS = tuple(module.__name__ for module in (console, media, meter, probe, shell))
_STRATEGY = "evmperf.lab.strategy"
_REMOTE = "RemotePlace"


def check(file: Path) -> list[str]:
    """A board file's mistakes beyond its options, a sentence each; raises UsageError if unreadable."""
    try:
        with file.open(encoding="utf-8") as stream, warnings.catch_warnings():
            warnings.simplefilter("error")
            data: dict[str, Any] = load(stream)
    except (YAMLError, UserWarning) as error:
        raise UsageError(f"{file}: Labgrid cannot read it: {one_line(error)}") from error
    main = data["targets"]["main"]
    if mistakes := [*_words(file, data), *_templates(file, data)]:
        return mistakes
    imports = [str(name) for name in data.get("imports") or ()]
    try:
        with _variables(data):
            Environment(str(file))
    except RegistrationError:
        pass  # a second file that imports the same strategy by its path
    except InvalidConfigError as error:
        return [f"{file}: {one_line(error)}"]
    except Exception as error:  # noqa: BLE001  # whatever an imported module raises
        return [f"{file}: imports {', '.join(imports)}: {type(error).__name__}: {one_line(error)}"]
    resources, drivers = classes(main.get("resources")), classes(main.get("drivers"))
    for kind, entries, registered in (
        ("resources", resources, target_factory.resources),
        ("drivers", drivers, target_factory.drivers),
    ):
        for name, arguments in entries:
            where = f"{file}: {_WHERE}.{kind}"
            module = registered[name].__module__ if name in registered else ""
            if not module:
                mistakes.append(f"{where}: {_unknown(name, registered)}")
            elif module in _OURS and module not in imports:
                mistakes.append(f"{where}: {name} needs {module} among the imports")
            else:
                mistakes += _attributes(f"{where}.{name}", registered[name], arguments)
    return mistakes or [*_bindings(file, resources, drivers), *_ways(file, drivers)]


def _words(file: Path, data: Mapping[str, Any]) -> Iterator[str]:
    """Words that are unknown, or not filled in."""
    for where, words, vocabulary in (("the file", data, _FILE), (_WHERE, data["targets"]["main"], _TARGET)):
        for word in words:
            try:
                check_word(file, where, str(word), vocabulary)
            except UsageError as error:
                yield str(error)
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if FILL_IN in line.partition("#")[0]:
            yield f"{file}: line {number} is not filled in: {line.strip()}"


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


@contextlib.contextmanager
def _variables(data: Any) -> Iterator[None]:
    """Give templates' variables that are not set a value for as long as Labgrid reads the file."""
    names = {name for template in _in_templates(data) for name in template.get_identifiers()}
    ours = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "checked"))
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def _unknown(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*names, "K3BootStrategy", "BootStrategy"], n=1)
    if near == [name]:
        return f"{name} needs {_STRATEGY} among the imports"
    hint = f"; did you mean {near[0]}?" if near else "; is its module among the imports?"
    return f"Labgrid knows no class {name!r}{hint}"


def _attributes(where: str, cls: Any, arguments: Mapping[str, Any]) -> Iterator[str]:
    fields = {
        field.name: field for field in attr.fields(cls) if field.init and field.name not in ("target", "name")
    }
    for word, value in arguments.items():
        if word in ("name", "bindings", "cls"):
            continue
        if word not in fields:
            near = difflib.get_close_matches(str(word), fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(fields))}."
            yield f"{where}: there is no attribute {word!r}; {hint}"
            continue
        field = fields[word]
        try:
            converted = field.converter(value) if callable(field.converter) else value
            if field.validator and not isinstance(value, Template):
                field.validator(None, field, converted)
        except Exception as error:  # noqa: BLE001  # a validator may raise anything
            text = error.args[0] if error.args else type(error).__name__
            yield f"{where}.{word}: {one_line(text)}"
    for name, field in fields.items():
        if field.default is attr.NOTHING and name not in arguments:
            yield f"{where}.{name} is missing"


_Entries = list[tuple[str, Mapping[str, object]]]


def _bindings(file: Path, resources: _Entries, drivers: _Entries) -> Iterator[str]:
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
                yield f"{file}: {_WHERE}.drivers.{name}: no {names} precedes it ({what})"
        predecessors.append(cls)


def _ways(file: Path, drivers: _Entries) -> Iterator[str]:
    """The strategy, and ways to the board, that are missing, too many, or halves of one."""
    where = f"{file}: {_WHERE}.drivers"
    classes_there = [target_factory.drivers[name] for name, _ in drivers]

    def has(kind: type) -> bool:
        return any(issubclass(cls, kind) for cls in classes_there)

    count = sum(issubclass(cls, Strategy) for cls in classes_there)
    if count != 1:
        one = "BootStrategy, for TI's boards K3BootStrategy"
        yield f"{where} has {count} strategies; evmperf needs one: {one}"
    if not has(ConsoleProtocol):
        if not has(SSHDriver):
            yield f"{where}: no way to the board: StampedSerialDriver or SSHDriver is missing"
    elif not (has(UBootDriver) and has(ShellDriver)):
        yield f"{where}: a console needs EvmUBootDriver and EvmShellDriver"
