"""The board file of a desk: the one that fits the board, with the way that there is to it here."""

import contextlib
import ipaddress
import re
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evmperf.benchmarks.tools import gauge
from evmperf.boards import board as boards
from evmperf.boards import copying, prompts, yamlfile
from evmperf.boards.copying import FILL_IN
from evmperf.boards.vocabulary import ETHERNET
from evmperf.lab.desk.identity import BoardIdentity, SshAddress
from evmperf.lab.desk.ports import Voice
from evmperf.model.errors import UsageError

SAFE = ("desk", "system", "crypto", "rt")
"""Drivers whose benchmarks overwrite nothing and need nothing beside the board."""
STORAGE = frozenset(("emmc", "mmcsd", "ospi", "ufs", "sata", "msata", "usb", "pcie"))
_WORDS = yamlfile.own("lab/desk/words.yaml")
WORTH: Sequence[tuple[str, Sequence[str], str]] = _WORDS["worth"]
PACKAGES: Mapping[str, str] = _WORDS["packages"]
TWICE: Mapping[str, str] = _WORDS["twice"]
"""What words.yaml says of what a desk leaves out."""
_MEDIA = {"MMC": "emmc", "SD": "sd"}
_OURS, _THEIRS = "192.168.187.1", "192.168.187.2/24"
"""Addresses for the two ends of a cable that has none."""
_DISCARD = 9
"""A UDP port that no answer is expected of."""
_DEEPEST = 8
"""Spaces before such a word: deeper ones are names of others."""


def fitting(identity: BoardIdentity) -> Path | None:
    """The board file of this kind of board, None for one that nobody has described."""
    for file in boards.files().values():
        compatible = boards.load(file).options.board.compatible
        if compatible and compatible in identity.compatible[:1]:
            return file
    return None


def write(
    folder: Path,
    identity: BoardIdentity,
    way: Voice | SshAddress,
    absent: Mapping[str, str],
    *,
    beside: SshAddress | None = None,
    power: str,
    tester: str = "",
    sections: Mapping[str, Mapping[str, str]] = {},
    password: str | None = None,
) -> Path:
    """Write the board file and return it; raises LabError when the disk does not take it.

    `beside` is the board's network, for long files beside its console; `sections` are cables that
    this desk found, each by its feature with its options.
    """
    like = fitting(identity)
    known = yamlfile.read(like)["targets"]["main"] if like else {}
    options = known.get("options", {}) | sections
    features = {*known.get("features", SAFE), "desk", *sections}
    cables = [word for word in ETHERNET if tester and word in features and word in options]
    boots = power == "reset" or (power == "hand" and not isinstance(way, SshAddress))
    ways = [_way(way, identity, password), *([_way(beside, identity, None)] if beside else [])]
    general = options.get("board") or _general(identity)
    machine = gauge.machine(identity.machine)
    chosen: dict[str, Mapping[str, object]] = {
        "board": {**general, "profile": "quick"},
        "boot": {"medium": _medium(identity, options.get("boot", {}).get("medium", "sd")), "power": power},
        "desk": {"machine": machine, "disks": list(identity.disks)} if machine else {},
        "absent": dict(absent),
        **{word: dict(options[word]) for word in cables},
        "tester": {"host": tester} if tester else {},
    }
    main: dict[str, object] = {
        "features": [*(["boot"] if boots else []), *(word for word in SAFE if word in features), *cables],
        "options": {word: section for word, section in chosen.items() if section},
        "resources": {name: words for resources, _ in ways for name, words in resources.items()},
        "drivers": {
            **({"ManualPowerDriver": {}} if power == "hand" else {}),
            **{name: words for _, drivers in ways for name, words in drivers.items()},
            **_strategy(identity, known.get("drivers", {}), is_known=bool(like)),
        },
    }
    data = {
        "imports": ["evmperf.lab.console", "evmperf.lab.shell", "evmperf.lab.strategy"],
        "targets": {"main": main},
    }
    about = f"# As `evmperf desk` found it{f', like {like.name}' if like else ''}.\n"
    text = about + yaml.safe_dump(data, sort_keys=False)
    name = like.stem if like else general["name"]
    return copying.written(folder / f"desk-{name}.yaml", text, "w", private=True)


def _general(identity: BoardIdentity) -> dict[str, str]:
    """The section `board` of a board that nobody has described."""
    name = re.sub(r"[^a-z0-9]+", "-", identity.model.lower()).strip("-")[:40] or "board"
    title = identity.model or "a board without a name"
    return {"name": name, "title": title, "description": f"{title}, {identity.soc or identity.os}"}


def _medium(identity: BoardIdentity, stated: str) -> str:
    """What the board booted from, as far as its root shows it."""
    device, _, kind = identity.root.partition(" ")
    return "nvme" if device.startswith("nvme") else _MEDIA.get(kind, stated)


def _strategy(
    identity: BoardIdentity, theirs: Mapping[str, Mapping[str, object]], *, is_known: bool
) -> dict[str, dict[str, object]]:
    """The strategy of the board file that fits, or the plain one."""
    driver = next((name for name in theirs if name.endswith("BootStrategy")), "BootStrategy")
    strategy = dict(theirs.get(driver) or {})
    if not is_known and identity.root.partition(" ")[2] not in _MEDIA:
        strategy["roots"] = {}  # what the root of another medium is like, nobody has said
    return {driver: strategy}


def cable(links: Mapping[str, Sequence[str]], *, far: bool) -> dict[str, dict[str, str]]:
    """The section `eth` for the interface cabled to this machine, {} for none; no new address if `far`."""
    for name, addresses in links.items():
        for address in addresses:
            with contextlib.suppress(ValueError, OSError), socket.socket(type=socket.SOCK_DGRAM) as way:
                board = ipaddress.IPv4Interface(address)
                way.connect((str(board.ip), _DISCARD))  # nothing is sent: the kernel chooses its own address
                own = way.getsockname()[0]
                if ipaddress.ip_address(own) in board.network:
                    return _ends(name, address, own)
    if len(links) == 1 and not far:
        return _ends(next(iter(links)), _THEIRS, _OURS)
    return {}


def blank(folder: Path, name: str, title: str = "") -> Path:
    """A board file that `evmperf board check` refuses until each FILL_IN is said. Raises as `keep` does."""
    options = copying.general(name, title or f"{FILL_IN}: its name in tables")
    port = Voice(f"{FILL_IN}: the console, e.g. /dev/ttyUSB0")
    with tempfile.TemporaryDirectory() as temporary:
        return keep(write(Path(temporary), BoardIdentity(), port, {}, power="hand"), folder, name, options)


def newest(folder: Path) -> Path:
    """The file that was found last; raises UsageError where there is none."""
    files = sorted(folder.glob("desk-*.yaml"), key=lambda file: file.stat().st_mtime_ns)
    if not files:
        raise UsageError(f"{folder} has no board file of a desk: find the board with `evmperf desk` first")
    return files[-1]


def keep(draft: Path, folder: Path, name: str, options: Mapping[str, str]) -> Path:
    """A board file of one's own from one that was found, with comments where a person must decide and
    the board's `options` that are stated.

    The board keeps its name, by which published figures are found, unless another is said. Raises
    UsageError for a file without a board or a name in use, LabError if the file cannot be written.
    """
    boards.load(draft)
    left = dict(options)
    lines = [f"# Begun by evmperf board new; evmperf board check {name} says whether it still fits."]
    for line in draft.read_text("utf-8").splitlines()[1:]:
        indent = line[: len(line) - len(line.lstrip())]
        word, colon, _ = line.strip().partition(":")
        if colon and word in _WORDS["decide"] and len(indent) <= _DEEPEST:
            lines += [f"{indent}# {text}" for text in _WORDS["decide"][word]]
        own = left.pop(word, "") if colon else ""
        lines.append(f"{indent}{word}: {copying.scalar(own)}" if own else line)
    file = copying.written(folder / f"{name}.yaml", "\n".join(lines) + "\n", "x", private=True)
    boards.load(file)
    return file


def _way(
    way: Voice | SshAddress, identity: BoardIdentity, password: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(way, SshAddress):
        service = {"address": way.host, "username": way.user, "port": way.port}
        key = {"keyfile": str(Path(way.key).resolve())} if way.key else {}
        return {"NetworkService": service}, {"SSHDriver": key}
    prompt = identity.prompt
    shell: dict[str, object] = {"username": identity.login} if identity.login not in ("", "root") else {}
    shell |= {"password": password} if password else {}
    if prompt and not re.search(prompts.SHELL_PROMPT, f"\n{prompt}"):
        shell["prompt"] = re.escape(prompt.rstrip()[-40:]) + " ?"
    port = {"port": way.path, "speed": way.baud}
    drivers = {"StampedSerialDriver": {}, "EvmUBootDriver": {}, "EvmShellDriver": shell}
    return {"RawSerialPort": port}, drivers


def _ends(interface: str, board: str, tester: str) -> dict[str, dict[str, str]]:
    return {"eth": {"interface": interface, "board_address": board, "tester_address": tester}}
