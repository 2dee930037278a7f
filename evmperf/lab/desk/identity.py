"""What a board says that it is, asked in its Linux over a serial port or SSH."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evmperf.benchmarks.tools.systemd_analyze import LAST_BOOT
from evmperf.lab.desk.ports import PortLine, Voice, heard
from evmperf.lab.login import LoginStopped, Prompt, log_in
from evmperf.lab.tester import SshTester, host_key_options, host_key_trouble
from evmperf.model.errors import LabError, ToolError, UsageError
from evmperf.model.places import FURTHER_PROGRAMS
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_PROMPT = re.compile(r"(?:[#$]|login:|assword[^\n:]{0,40}:) ?\Z")
_END = re.compile(r"evmperf-end")
_LOGIN_S, _ANSWER_S = 40.0, 60.0
"""How long a login may take, and the answer to a line, or over SSH to all of them."""
_WORDS = 25
"""Programs that one line asks for."""
_SSH_OPTIONS = ("-F", "none", "-o", "LogLevel=ERROR")
"""Without this user's configuration, as Labgrid's driver does."""
_TEXT = 120
"""Characters of one thing that a board says of itself."""
_PLACES = ("model", "soc", "os", "kernel", "root", "user", "login", "sudo", "machine")
_BUSES = (("pcie", r"\S+/nvme/"), ("usb", r"\S+/usb\d"), ("ufs", r"\S*[/.]ufs"), ("sata", r"\S+/ata\d"))
"""What the path of a disk in sysfs shows of it."""
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,31}")
_IDLE, _HOT_MC, _LITTLE_KIB = 0.5, 75_000, 64 * 1024
"""The load, temperature (in thousandths of a degree) and free memory from which figures are spoilt."""


class PasswordWanted(UsageError):
    """The board asks for a password that nobody has said."""


@dataclass(frozen=True)
class SshAddress:
    """A board's address; `key` is a file with a private key, "" for this user's own."""

    user: str
    host: str
    port: int = 22
    key: str = ""


@dataclass(frozen=True)
class BoardIdentity:
    """What was read: `compatible` from the most to the least special, `tools` that were found; `prompt` is
    the shell's on the console; `login` is who logged in, and where that is not root `sudo` is what sudo
    says without a password. `links` are its wired interfaces with a carrier, each with its IPv4 addresses.
    `unread` are disks that cannot be read, each with the reason. `state` is what it does at the moment, each
    in words and whether that spoils figures; `tells_boot` is whether the duration of the boot is known.
    """

    model: str = ""
    soc: str = ""
    os: str = ""
    kernel: str = ""
    root: str = ""
    user: str = ""
    login: str = ""
    sudo: str = ""
    machine: str = ""
    compatible: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    prompt: str = ""
    disks: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    has_systemd: bool = False
    tells_boot: bool = False
    state: tuple[tuple[str, bool], ...] = ()


def question(tools: Iterable[str]) -> str:
    """Shell text that only reads, in lines that busybox's shell takes (1 KiB)."""
    words = sorted(tools)
    chunks = (" ".join(words[at : at + _WORDS]) for at in range(0, len(words), _WORDS))
    about = "\n".join((_SHELL("question", further=FURTHER_PROGRAMS), _SHELL("disks"), _SHELL("state")))
    about += f"\n{LAST_BOOT} | grep -q . && echo boot: told"
    test = "case $t in /*) [ -d $t ];; *) command -v $t >/dev/null 2>&1;; esac && echo tool: $t"
    return "\n".join([about, *(f"for t in {chunk}; do {test}; done" for chunk in chunks)])


def answer(output: str, prompt: str = "") -> BoardIdentity:
    """What a board replied to `question`; lines that are none of it are passed over."""
    entries: dict[str, list[str]] = {}
    for line in output.splitlines():
        name, colon, text = line.strip().partition(":")
        text = "".join(c if c.isprintable() else "?" for c in text.strip())[:_TEXT]
        if colon and text:
            entries.setdefault(name, []).append(text)
    first = {name: entries[name][0] for name in _PLACES if name in entries}
    if not _NAME.fullmatch(first.get("login", "")):
        first.pop("login", None)
    named = [text for word in ("model", "dmi", "host") for text in entries.get(word, ())]
    first |= {"model": named[0]} if named else {}
    compatible = tuple(" ".join(entries.get("compatible", ())).split())
    tools = frozenset(
        word for word in entries.get("tool", ()) if re.fullmatch(r"[\w.+-]+|(?:/[\w.+-]+)+", word)
    )
    links = {
        name: addresses
        for name, *addresses in map(str.split, entries.get("link", ()))
        if re.fullmatch(r"[\w.-]{1,15}", name)
    }
    return BoardIdentity(
        **first,
        compatible=compatible,
        tools=tools,
        links=links,
        prompt=prompt,
        disks=_disks(entries.get("disk", ())),
        unread=tuple(
            f"/dev/{match[1]} ({match[2]})"
            for text in entries.get("unread", ())
            if (match := re.fullmatch(r"(\w{1,32}) (.+)", text))
        ),
        has_systemd="systemd" in entries,
        tells_boot="boot" in entries,
        state=tuple(_state(entries)),
    )


def _state(entries: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, bool]]:
    """What may spoil figures before they are measured, as far as the board tells it."""
    load, cpus, heat, free = (_number(entries, word) for word in ("load", "cpus", "temperature", "memory"))
    if load is not None:
        yield f"load {load:g} of {f'{cpus:g}' if cpus else '?'} CPUs", load > _IDLE
    if re.fullmatch("[a-z]{1,20}", governor := entries.get("governor", [""])[0]):
        yield f"governor {governor}", governor == "powersave"
    if heat:
        yield f"{heat / 1000:.0f} °C", heat > _HOT_MC
    if free is not None:
        yield f"{free / 1024:.0f} MiB of memory free", free < _LITTLE_KIB


def _number(entries: Mapping[str, Sequence[str]], word: str) -> float | None:
    """The last number that a board said of something, None without one."""
    match = re.fullmatch(r"(?:\d{1,12} )?(\d{1,12}(?:\.\d{1,3})?)", entries.get(word, [""])[0])
    return float(match[1]) if match else None


def _disks(lines: Iterable[str]) -> tuple[str, ...]:
    """Disks as the board file has them, KIND=/dev/NAME, those of a kind counted."""
    devices: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"(\w{1,32})(?: (MMC|SD|\d))? (/sys/\S+)", line)
        if not match:
            continue
        name, card, path = match.groups()
        buses = (bus for bus, pattern in _BUSES if re.match(pattern, path))
        kind = {"MMC": "emmc", "SD": "mmcsd"}.get(card or "") or next(buses, "disk")
        number = sum(label.partition(" ")[0] == kind for label in devices)
        devices[f"{kind} {number + 1}" if number else kind] = f"/dev/{name}"
    return tuple(f"{kind}={device}" for kind, device in devices.items())


def ask(
    way: Voice | SshAddress, command: str, password: str | None = None, user: str = "root"
) -> tuple[str, str]:
    """What lines of shell print as root on the board, and the console's prompt, "" over SSH.

    On a console `user` logs in, with sudo if that is not root. Raises PasswordWanted, UsageError, LabError.
    """
    if isinstance(way, SshAddress):
        return _over_ssh(way, command)
    return _over_serial(way, command, password, user)


def _over_serial(voice: Voice, command: str, password: str | None, user: str) -> tuple[str, str]:
    with PortLine(voice.path, voice.baud) as line:
        output = ""

        def next_prompt(text: str | None, secret: bool) -> Prompt:
            nonlocal output
            output = line.ask(f"{text}\n", _PROMPT, _LOGIN_S, secret=text or "" if secret else "")
            talks = heard(output)
            if talks == "Linux":
                return "user" if output.rstrip().endswith("$") else "root"
            return "login" if talks == "login" else "password"

        try:
            log_in(next_prompt, user, password)
        except LoginStopped as stop:
            if stop.prompt == "password" and password is None:
                line.send("\x03")
                raise PasswordWanted(f"{voice.path}: the board asks for a password") from None
            # A user's shell tells what it may.
            if stop.prompt != "user":
                wrong = "check the password" if stop.passwords else "--user names another one"
                raise UsageError(f"{voice.path}: the board refused the login of {user}: {wrong}") from None
        prompt = output.rpartition("\n")[2]
        answers = (line.ask(f"{one}; echo evm'perf-end'\n", _END, _ANSWER_S) for one in command.splitlines())
        return "".join(_END.split(answer)[0] for answer in answers), prompt


def checks_key(address: SshAddress) -> bool:
    """Whether ssh checks the host key of an address."""
    return "StrictHostKeyChecking=yes" in host_key_options(address.host, address.port)


def _over_ssh(address: SshAddress, command: str) -> tuple[str, str]:
    name = f"{address.user}@{address.host}"
    place = (address.host, address.port)
    options = [*_SSH_OPTIONS, *host_key_options(*place), "-p", str(address.port)]
    options += ["-i", address.key] if address.key else []
    tester = SshTester(name, options, name)
    try:
        return tester.run(command, _ANSWER_S).text, ""
    except ToolError:
        raise LabError(f"{name} does not answer within {_ANSWER_S:g} s") from None
    except LabError as error:
        if trouble := host_key_trouble(str(error), *place):
            raise LabError(trouble) from None
        if "Permission denied" not in str(error):
            raise
        port = f"-p {address.port} " if address.port != SshAddress.port else ""
        raise LabError(f"{error}; put a key there first: ssh-copy-id {port}{name}") from None
    finally:
        tester.close()
