"""Labgrid environments of virtual boards: their ports, and copies with a bench's own ports."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from evmperf.model.errors import UsageError
from evmperf.model.places import project
from evmperf.virtual.board import HOST


class _Tagged:
    """A scalar with a tag of Labgrid's, such as `!template`, that must come out as it went in."""

    def __init__(self, tag: str, value: str) -> None:
        self.tag = tag
        self.value = value


class _Loader(yaml.SafeLoader):
    pass


class _Dumper(yaml.SafeDumper):
    # Aliases are legal YAML, but a file for people repeats itself rather than say *id001.
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _read_tagged(loader: _Loader, tag: str, node: yaml.Node) -> _Tagged:
    return _Tagged(f"!{tag}", str(loader.construct_scalar(node)))  # type: ignore[arg-type]


def _write_tagged(dumper: _Dumper, data: _Tagged) -> yaml.Node:
    node: yaml.Node = dumper.represent_scalar(data.tag, data.value)
    return node


_Loader.add_multi_constructor("!", _read_tagged)
_Dumper.add_representer(_Tagged, _write_tagged)


def source(variant: str) -> Path:
    """The environment that comes with a variant: `env/<variant>.yaml` of the project."""
    return project("env") / f"{variant}.yaml"


def usual_ports(name: str, serial: int | None = None, power: int | None = None) -> tuple[int, int]:
    """Serial and power port of a board: as given, else those of its environment, else 0 (any free one)."""
    file = source(name)
    usual = ports(file) if file.exists() else (0, 0)
    return usual[0] if serial is None else serial, usual[1] if power is None else power


def ports(file: Path) -> tuple[int, int]:
    """The bench's serial and power port in an environment; raises UsageError for one without them."""
    serial, power = _ports(_load(file), file)
    url = str(power.get("host", ""))
    found = re.fullmatch(rf"http://{re.escape(HOST)}:(\d+)/power/\{{index\}}", url)
    if not isinstance(serial.get("port"), int) or not found:
        raise UsageError(
            f"{file} does not name the ports of its virtual EVM: set NetworkSerialPort.port, and "
            f"NetworkPowerPort.host to http://{HOST}:PORT/power/{{index}}"
        )
    return serial["port"], int(found[1])


def write(original: Path, copy: Path, *, serial_port: int, power_port: int) -> None:
    """Write a copy of an environment with these ports of target `main` and absolute paths. Raises
    UsageError without a serial or power port, or for an unreadable or unwritable file.
    """
    data = _load(original)
    serial, power = _ports(data, original)
    serial.update(host=HOST, port=serial_port, protocol="raw")
    power.update(model="rest", host=f"http://{HOST}:{power_port}/power/{{index}}", index="0")
    for _, resource in _resources(data, original):
        # The simulated meter is behind the power switch.
        if str(resource.get("visa", "")).startswith(f"TCPIP::{HOST}::"):
            resource["visa"] = f"TCPIP::{HOST}::{power_port}::SOCKET"
    base = original.resolve().parent
    for key in ("images", "tools", "paths"):
        if key in data:
            data[key] = _each(data[key], lambda value: _absolute(value, base))
    # An import that is not a file is the name of a module.
    names = data.get("imports") or []
    data["imports"] = [
        _absolute(name, base) if str(name).endswith(".py") else name
        for name in ([names] if isinstance(names, str) else names)
    ]
    data = _each(data, lambda value: _rebase(value, base))
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    head = f"# Written by `evmperf virtual start --write-env` from {original.resolve()}.\n"
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(head + text)
    except OSError as error:
        raise UsageError(f"{copy} cannot be written: {error.strerror}") from None


def _load(file: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = yaml.load(file.read_text(), Loader=_Loader)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    return data


def _resources(data: dict[str, Any], file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Class and arguments of each resource of target `main`, in either of Labgrid's forms."""
    try:
        resources = data["targets"]["main"]["resources"]
    except (KeyError, TypeError):
        raise UsageError(f"{file} has no targets.main.resources; see env/virtual.yaml") from None
    found: list[tuple[str, dict[str, Any]]] = []
    for entry in resources if isinstance(resources, list) else [resources]:
        if isinstance(entry, dict) and "cls" in entry:
            found.append((str(entry["cls"]), entry))
        elif isinstance(entry, dict):
            found += [(name, value) for name, value in entry.items() if isinstance(value, dict)]
    return found


def _ports(data: dict[str, Any], file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The serial port and the power port of target `main`."""
    resources = dict(reversed(_resources(data, file)))
    for name in ("NetworkSerialPort", "NetworkPowerPort"):
        if name not in resources:
            raise UsageError(f"{file} has no {name} under targets.main.resources")
    return resources["NetworkSerialPort"], resources["NetworkPowerPort"]


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of nested mappings and lists in which each scalar is what `change` makes of it."""
    if isinstance(value, dict):
        return {key: _each(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each(item, change) for item in value]
    return change(value)


def _absolute(value: Any, base: Path) -> Any:
    # Labgrid expands ~ and $VARIABLES itself, and takes neither as relative.
    if isinstance(value, str) and not value.startswith(("/", "~", "$")):
        return str(base / value)
    return value


def _rebase(value: Any, base: Path) -> Any:
    """Replace Labgrid's $BASE, the folder of the environment, which the copy is not in."""
    if isinstance(value, _Tagged) and value.tag == "!template":
        there = str(base).replace("$", "$$")
        for variable in ("${BASE}", "$BASE"):
            value = _Tagged(value.tag, value.value.replace(variable, there))
    return value
