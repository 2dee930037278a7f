"""A board as Labgrid's env file describes it: a file of evmperf's in `env/`, or any that a lab has."""

import contextlib
import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from evmperf.boards import prompts, yamlfile
from evmperf.boards.options import MAPPINGS, Options, Section
from evmperf.boards.vocabulary import FEATURES, Known, known_options, sections
from evmperf.model.concealing import learn
from evmperf.model.errors import UsageError, meant
from evmperf.model.places import project

ENV_DIR = project("env")
"""The board files that come with evmperf."""

MAIN = "main"
"""The target that is the board where a file has several."""
KEY = "evmperf"
"""The key of a target that has evmperf's options."""
VIRTUAL_HOST = "127.0.0.1"
"""Where the lab of a virtual EVM listens."""
_WHERE = "targets.main"
_REMOTE = "RemotePlace"
_ALWAYS = frozenset(("desk", "system", "crypto"))
"""Features of every board that runs Linux: their benchmarks overwrite nothing."""
_STRATEGIES = ("BootStrategy", "K3BootStrategy")
"""evmperf's own."""
_SHOWN = {("desk", "machine"), ("desk", "disks"), ("boot", "medium")}
"""Options that a board shows itself."""
_SWITCH = re.compile(r"Power|PDU|QEMU")
_CONSOLE = re.compile(r"Serial|Console|QEMU|UBoot|ShellDriver")
"""Classes of Labgrid's and of labs' own, by their names: what they are is not known here."""


@dataclass(frozen=True)
class Board:
    """One EVM: features (its drivers) and options. Making one checks `sections`, what the file says of the
    options, and raises UsageError that names file and word. `named_tester` is the lab's tester, whatever the
    file says. `assumed` is a file that names no feature of evmperf's: the board shows what it has.
    """

    file: Path
    features: frozenset[str]
    sections: Mapping[str, Mapping[str, Any]]
    named_tester: str = ""
    drivers: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    """What the file says of Labgrid's drivers and resources, by class."""
    target: str = MAIN
    labels: frozenset[str] = frozenset()
    """Features of the lab's own, which mean nothing to evmperf."""
    place: str = ""
    """The name of its place on a coordinator, as the file says it."""
    assumed: bool = False
    options: Options = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", _options(self.file, self.sections))

    @property
    def name(self) -> str:
        """The board's name in guides, results and databases: its own, its place's or its file's."""
        return self.options.board.name or self.place or self.file.stem

    @property
    def file_name(self) -> str:
        """The file as a person would type it."""
        return self.file.name

    @property
    def is_virtual(self) -> bool:
        """Whether figures of this board are a virtual EVM's, kept apart from real ones."""
        return bool(self.options.board.virtual)

    @property
    def power(self) -> str:
        """How its power is worked: by a `switch`, by `hand`, by a software `reset`, or `none`."""
        if stated := self.options.boot.power:
            return stated
        if "ManualPowerDriver" in self.drivers:
            return "hand"
        is_switched = not self.drivers or any(_SWITCH.search(name) for name in self.drivers)
        if is_switched:
            return "switch"
        return "reset" if any("ResetDriver" in name for name in self.drivers) else "none"

    @property
    def has_console(self) -> bool:
        """Whether the file has a console; one without drivers says nothing against it."""
        return not self.drivers or any(_CONSOLE.search(name) for name in self.drivers)

    @property
    def is_stamped(self) -> bool:
        """Whether each byte of the console gets the time of its arrival."""
        return not self.drivers or any("SerialDriver" in name for name in self.drivers)

    @property
    def has_ssh(self) -> bool:
        """Whether the file has a way to the board over SSH."""
        return "SSHDriver" in self.drivers

    @property
    def strategy(self) -> Mapping[str, Any]:
        """What the file says of its boot strategy, with the media that this strategy has by itself."""
        for name, options in self.drivers.items():
            if name in _STRATEGIES:
                return {"media": prompts.MEDIA if name == "K3BootStrategy" else {}, **(options or {})}
        return {"media": prompts.MEDIA}

    @property
    def without_boots(self) -> str:
        """Why the board is not made to boot, "" where it is."""
        if not self.has_console and self.power != "reset":
            return (
                f"{self.file_name} has no console: boot times and U-Boot need one; options.boot.power: "
                f"reset takes boot times from kernel and systemd"
            )
        if self.has_console and not self.is_stamped:
            return (
                f"{self.file_name} has no serial port with SerialDriver: the bytes of its console get no "
                f"time stamps, so boots cannot be measured"
            )
        if self.power == "none":
            return (
                f"{self.file_name} cannot boot the board: add a power driver "
                f"(ManualPowerDriver asks a person), or set options.boot.power: reset"
            )
        return ""

    @property
    def without_uboot(self) -> str:
        """Why nothing can be typed at U-Boot's prompt, "" where it can."""
        if flow := self.options.boot.flow:
            return f"{self.file_name} has `flow: {flow}`, so Linux starts without U-Boot"
        if not self.has_console:
            return f"{self.file_name} has no console: U-Boot needs one"
        if self.drivers and not any("UBootDriver" in name for name in self.drivers):
            return f"{self.file_name} has no UBootDriver: nothing can be typed in U-Boot"
        return ""

    @property
    def without_arguments(self) -> str:
        """Why kernel arguments cannot be given, "" where they can."""
        own = [name for name in self.drivers if name.endswith("Strategy") and name not in _STRATEGIES]
        if own:
            return (
                f"{self.file_name} boots by {own[0]}, which takes no kernel arguments (K3BootStrategy does)"
            )
        return self.without_uboot

    @property
    def tester(self) -> str:
        """SSH name of the machine beside the board, "" if none is configured."""
        return self.named_tester or self.options.tester.host

    def lab_ports(self) -> tuple[int, int]:
        """The serial and the power port of a virtual EVM's lab; raises UsageError for a file without them."""
        serial, power = (self.resources.get(f"Network{kind}Port", {}) for kind in ("Serial", "Power"))
        form = rf"http://{re.escape(VIRTUAL_HOST)}:(\d+)/power/\{{index\}}"
        address = re.fullmatch(form, str(power.get("host", "")))
        if not isinstance(serial.get("port"), int) or not address:
            raise UsageError(
                f"{self.file} does not name the ports of its virtual EVM: set NetworkSerialPort.port, and "
                f"NetworkPowerPort.host to http://{VIRTUAL_HOST}:PORT/power/{{index}}"
            )
        return serial["port"], int(address[1])

    def says(self, section: str, key: str) -> bool:
        """Whether the file gives this option itself, or the board will show it."""
        return key in self.sections.get(section, {}) or (self.assumed and (section, key) in _SHOWN)

    def shown(self, sections: Mapping[str, Mapping[str, Any]]) -> "Board":
        """The board with what it showed of itself; what its file says stays."""
        merged = {name: {**entries, **self.sections.get(name, {})} for name, entries in sections.items()}
        return replace(self, sections={**self.sections, **merged}, assumed=False)

    def text(self, section: str, key: str) -> str:
        """An option by its name, as text; for tables that several drivers share."""
        return str(getattr(getattr(self.options, section), key))


def files() -> dict[str, Path]:
    """Board files by name: those of `env/` in the current folder, then those of evmperf itself."""
    own = Path("env")
    folders = [ENV_DIR] if own.resolve() == ENV_DIR else [ENV_DIR, own]
    return {path.name: path for folder in folders for path in sorted(folder.glob("*.yaml"))}


def names() -> list[str]:
    """File names of all boards there are."""
    return sorted(files())


def find(given: str) -> Path:
    """The board file meant by `given`: a path, a name in `env/` with or without .yaml, or the name of the
    board that a single file there describes. Raises UsageError with the places and the known files.
    """
    for path in (Path(given), Path(f"{given}.yaml")):
        if os.path.isfile(path):  # noqa: PTH113  # a name that is too long is no file, either
            return path
    by_name = files()
    for name in (given, f"{given}.yaml"):
        if name in by_name:
            return by_name[name]
    named = []
    for file in by_name.values():
        with contextlib.suppress(UsageError):
            if load(file).name == given:
                named.append(file)
    if len(named) == 1:
        return named[0]
    hint = meant(Path(given).name, by_name)
    raise UsageError(
        f"no board file {given} here, in ./env or in {ENV_DIR}{hint or '.'} "
        f"Known boards: {', '.join(sorted(by_name))}."
    )


def load(file: Path, tester: str = "", options: Path | None = None) -> Board:
    """Read and check a board file; `tester` is the lab's SSH name of one, `options` a file of evmperf's
    options beside a file of the lab's. Raises UsageError.
    """
    name, main = target_of(file)
    features = main.get("features") or []
    features = [features] if isinstance(features, str) else features
    if not isinstance(features, list):
        raise UsageError(f"{file}: targets.{name}.features must be a list")
    labels = {str(feature) for feature in features}
    drivers, resources = (dict(classes(main.get(word))) for word in ("drivers", "resources"))
    place = (resources.get(_REMOTE) or {}).get("name", "")
    stated, added = _sections(file, name, main, options)
    named = labels.intersection(FEATURES)
    board = Board(
        file,
        frozenset((*named, *FEATURES.keys() & added)),
        stated,
        tester,
        drivers,
        resources,
        name,
        frozenset(labels.difference(FEATURES)),
        place if isinstance(place, str) and re.fullmatch(r"[\w.-]{1,64}", place) else "",
    )
    if named:
        return board
    assumed = _ALWAYS if board.without_boots else {*_ALWAYS, "boot"}
    return replace(board, features=board.features.union(assumed), assumed=True)


def target_of(file: Path) -> tuple[str, dict[str, Any]]:
    """Name and content of the target that is the board: `main`, or the only one. Raises UsageError."""
    document = yamlfile.read(file)
    learn(document)
    targets = document.get("targets") if isinstance(document, dict) else None
    if not isinstance(targets, dict) or not targets:
        raise UsageError(f"{file}: has no targets, so it is no env file of Labgrid's")
    name = MAIN if MAIN in targets else next(iter(targets))
    if name != MAIN and len(targets) > 1:
        raise UsageError(f"{file}: has targets {', '.join(map(str, targets))} and none is called {MAIN}")
    target = targets[name]
    if not isinstance(target, dict):
        raise UsageError(f"{file}: targets.{name} must be a mapping")
    return str(name), target


def _sections(
    file: Path, target: str, main: Mapping[str, Any], beside: Path | None
) -> tuple[Mapping[str, Mapping[str, Any]], set[str]]:
    """evmperf's options: of the file beside, of the key `evmperf`, or of `options` where the board has a name
    there; other options are the lab's own. Also the sections of the former two: the board has these features.
    """
    sections: dict[str, Mapping[str, Any]] = {}
    added: set[str] = set()
    stated = main.get("options") or {}
    if isinstance(stated, dict) and isinstance(board := stated.get("board"), dict) and "name" in board:
        sections |= {word: entries for word, entries in stated.items() if word in _words()}
    further = [(file, f"targets.{target}.{KEY}", main.get(KEY))]
    if beside:
        document = yamlfile.read(beside)
        further.append((beside, KEY, document.get(KEY, document) if isinstance(document, dict) else document))
    for source, where, entries in further:
        if entries is None:
            continue
        if not isinstance(entries, dict):
            raise UsageError(f"{source}: {where} must be a mapping of evmperf's options")
        for word in entries:
            check_word(source, where, str(word), _words())
        sections |= entries
        added |= entries.keys()
    return sections, added


def _words() -> list[str]:
    return [*sections(), *MAPPINGS]


def classes(entries: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """Labgrid's classes of drivers or resources with their attributes, in either of Labgrid's forms."""
    if isinstance(entries, dict):
        return [(str(name), arguments or {}) for name, arguments in entries.items()]
    pairs: list[tuple[str, Mapping[str, Any]]] = []
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, dict) and item:
            (name, arguments), *_ = item.items()
            if len(item) > 1 or name == "cls":
                name, arguments = item.get("cls"), item
            pairs.append((str(name), arguments or {}))
    return pairs


def _options(file: Path, stated: Mapping[str, Any]) -> Options:
    where = f"{_WHERE}.options"
    for name, entries in stated.items():
        if not isinstance(entries, dict):
            raise UsageError(f"{file}: {where}.{name} must be a mapping")
        for word, text in entries.items() if name in MAPPINGS else ():
            if not isinstance(text, str) or not text:
                raise UsageError(f"{file}: {where}.{name}.{word} must be {MAPPINGS[name]}")
    for name, section in sections().items():
        _check_section(file, f"{where}.{name}", section, stated.get(name, {}))
    return msgspec.convert(stated, Options)


def _check_section(file: Path, where: str, section: type[Section], stated: Mapping[Any, Any]) -> None:
    options = known_options(section)
    for key in stated:
        check_word(file, where, str(key), options)
    for key, option in options.items():
        if key in stated:
            _check_value(file, f"{where}.{key}", option, stated[key])


def _check_value(file: Path, where: str, option: Known, value: Any) -> None:
    form = f"one of {', '.join(option.choices)}" if option.choices else ""
    try:
        if value != "":
            msgspec.convert(value, option.type)
            return
    except msgspec.ValidationError as error:
        if option.yaml_type == "dict":
            raise UsageError(f"{file}: {where}: {error}") from None
        # Its sentence has the bound where the type is right: "Expected `int` >= 1".
        if ">=" in str(error):
            form = str(error).removeprefix("Expected ").replace("`", "")
    form = form or f"of type {option.yaml_type}"
    raise UsageError(f"{file}: {where} must be {form} ({option.help}), not {value!r}")


def check_word(file: Path, where: str, word: str, vocabulary: Iterable[str]) -> None:
    """Raise UsageError, which names the file and the nearest word, unless a word is known."""
    if word in vocabulary:
        return
    words = sorted(vocabulary)
    near = difflib.get_close_matches(word, words, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(words)}."
    raise UsageError(f"{file}: {where}: unknown word {word!r}; {hint}")
