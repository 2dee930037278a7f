"""The desk: finding the board that is there, saying what it can measure now, and measuring it."""

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED, FEATURES
from evmperf.commands.app.requests import FindBoard, FoundBoard, Hear, LeftOut
from evmperf.lab.desk import boardfile, identity, ports
from evmperf.lab.desk.identity import SshAddress
from evmperf.lab.desk.ports import Port, Voice
from evmperf.lab.provision import scratch
from evmperf.measure import boardfile as boardfiles
from evmperf.model.errors import LabError, UsageError
from evmperf.model.replies import Remark, WantedSession

_ADDRESS = re.compile(r"(?:([\w][\w.-]*)@)?(\[[0-9a-fA-F:.]+\]|[\w][\w.-]*)(?::(\d{1,5}))?")
_POWER = {
    "switch": "the board is power-cycled and left off",
    "hand": "you are asked to switch the board off and on",
    "reset": "the board is reset or rebooted",
}
_FOLDERS = {"multibench": "multibench", "coremarkpro": "coremark_pro", "coremarkpro_two_core": "coremark_pro"}
"""Benchmarks that lie in a folder of their own, each with its option of the section `system`."""
_ANY = Board(
    Path("board"),
    frozenset(),
    {
        "board": {"name": "board", "title": "board", "description": "board", "profile": "quick"},
        "boot": {"medium": "sd"},
    },
)
"""A board whose file says nothing, for what benchmarks need on it."""


class NoBoard(UsageError):
    """There is no board on this desk."""


def find(request: FindBoard, hear: Hear, agree: Callable[[str], bool] = lambda plan: False) -> FoundBoard:
    """Find the board, ask it what it is, and write its file; `agree` says whether benchmarks may overwrite a
    partition as that sentence says.

    Raises UsageError where there is no board, it does not log in (PasswordWanted where a password
    would help) or has no free space, LabError for a way that is broken.
    """
    drivers = {*boardfile.SAFE, *CABLED, *boardfile.STORAGE}
    known = [b for b in catalogue.benchmarks().values() if b.driver in drivers]
    question = identity.question({tool for benchmark in known for tool in _needs(benchmark)})
    network = _address(request) if request.address else None
    way = network if network and not request.ports else _voice(request, hear)
    found = identity.answer(*identity.ask(way, question, request.password, request.user))
    if network and network is not way:
        identity.ask(network, "true")  # a console is there, and SSH carries files
    if found.user != "0":
        name = found.login or "the user there"
        why = f" ({found.sudo})" if found.sudo else ""
        raise UsageError(
            f"{name} is not root and gets no sudo without a password{why}, so no benchmark can run: add the "
            f"line `{name} ALL=(ALL) NOPASSWD: ALL` with visudo on the board, or log in as root"
        )
    power = request.power if isinstance(way, Voice) or request.power != "hand" else "none"
    like = boardfile.fitting(found)
    sections: dict[str, Mapping[str, str]] = {}
    if request.tester.partition(":")[0] == "local" and not like:
        ends = boardfile.cable(found.links, far=network is not None)
        sections |= {"eth": ends} if ends else {}
    if request.make_scratch:
        sections |= _scratch(way, request.password, hear, agree)
    measured = {*boardfile.SAFE, *sections, *(CABLED if request.tester else ())}
    absent = {
        benchmark.name: f"not on the board: {', '.join(missing)}"
        for benchmark in known
        if benchmark.driver in measured and (missing := sorted(_needs(benchmark) - found.tools))
    }
    file = boardfile.write(
        Path(request.folder),
        found,
        way,
        absent,
        beside=network if network is not way else None,
        power=power,
        tester=request.tester,
        sections=sections,
        password=request.password,
    )
    where = f"{way.user}@{way.host}" if isinstance(way, SshAddress) else way.port.path
    about = FoundBoard(
        where=where,
        model=found.model or "a board without a name",
        os=f"{found.os}, Linux {found.kernel}",
        like=like.name if like else "",
        file=str(file),
    )
    return _with_benchmarks(about)


def _needs(benchmark: Benchmark) -> set[str]:
    """Programs, and folders with their path, that the benchmark needs on the board."""
    folder = _FOLDERS.get(benchmark.name)
    folders = [getattr(_ANY.options.system, folder)] if folder else []
    return {*benchmark.tools_on(_ANY), *folders}


def _scratch(
    way: Voice | SshAddress, password: str | None, hear: Hear, agree: Callable[[str], bool]
) -> dict[str, Mapping[str, str]]:
    """The section of a partition that may be overwritten; {} after the command for one was said, or where
    nobody agreed.
    """
    survey = identity.ask(way, scratch.SURVEY, password)[0]
    partition = scratch.present(survey)
    if partition is None:
        hear(Remark(sentence=scratch.plan(survey).proposal))
    elif agree(f"Benchmarks overwrite {partition.device} ({partition.mib} MiB)."):
        return {partition.driver: partition.section}
    return {}


def named(given: str) -> FoundBoard:
    """A board that has a file, and what can be measured on it by that; raises UsageError."""
    board = boardfiles.named(given)
    title = board.options.board.title
    return _with_benchmarks(
        FoundBoard(where=board.name, model=title, like=board.file_name, file=str(board.file))
    )


def measure(file: str, results: str, select: str = "") -> int:
    """Measure what the file can, on this terminal; returns pytest's exit status."""
    command = WantedSession(board=file, results=results, select=select, profile="quick").command()
    return subprocess.run(command, check=False).returncode


def _address(request: FindBoard) -> SshAddress:
    match = _ADDRESS.fullmatch(request.address)
    if not match:
        raise UsageError(f"{request.address!r} is not an address: write root@HOST or root@HOST:PORT")
    return SshAddress(match[1] or "root", match[2].strip("[]"), int(match[3] or 22), request.key)


def _voice(request: FindBoard, hear: Hear) -> Voice:
    """The console: the port on which a board talks; raises UsageError."""
    there = [Port(path) for path in request.ports] or ports.usb_ports()
    if not there:
        raise NoBoard(
            "no board found: this machine has no USB serial port; plug in the console's cable, or for a "
            "board on the network: evmperf desk root@ADDRESS"
        )
    voices, troubles = ports.listen(there)
    for trouble in troubles:
        hear(Remark(sentence=trouble))
    for voice in voices:
        what = f"{voice.talks} at {voice.baud} baud" if voice.talks else "nothing"
        usb = f" ({voice.port.usb})" if voice.port.usb else ""
        hear(Remark(sentence=f"{voice.port.path}{usb}: {what}"))
    talking = [voice for voice in voices if voice.talks]
    if not talking:
        if troubles and not voices:
            raise LabError(troubles[0])
        raise NoBoard(
            "no board answers on these ports: is it switched on, and has it started Linux or "
            "U-Boot? Some boards have several consoles; a silent one may be another UART"
        )
    if len(talking) > 1:
        names = " and ".join(voice.port.path for voice in talking)
        raise UsageError(f"{names} both have a board: choose one with --port")
    voice = talking[0]
    if voice.talks == "U-Boot":
        if not request.boot:
            raise UsageError(
                f"{voice.port.path}: the board is at U-Boot's prompt: boot Linux there, or add --boot"
            )
        hear(Remark(sentence="booting Linux"))
        voice = identity.booted(voice)
    return voice


def _with_benchmarks(about: FoundBoard) -> FoundBoard:
    """The same with what can be measured by the board's file, and why the rest cannot."""
    board = boardfiles.named(about.file)
    can: dict[str, int] = {}
    left: dict[str, list[str]] = {}
    for benchmark in catalogue.benchmarks().values():
        reason = benchmark.unsupported(board)
        if reason and benchmark.driver not in board.features:
            left.setdefault(boardfile.why_not(benchmark.driver), []).append(benchmark.driver)
        elif reason:
            left.setdefault(reason, []).append(benchmark.name)
        elif cases := benchmark.cases("quick"):
            can[benchmark.name] = len(cases)
    order = [*FEATURES, *catalogue.benchmarks()]
    reasons = tuple(
        LeftOut(names=tuple(sorted(set(names), key=order.index)), why=why) for why, names in left.items()
    )
    changes = [_POWER[board.power]] if board.power in _POWER else []
    for driver in sorted(board.features & boardfile.STORAGE):
        if scratch := getattr(getattr(board.options, driver, None), "scratch", ""):
            changes.append(f"{scratch} is overwritten")
    return msgspec.structs.replace(about, can=can, left_out=reasons, changes=tuple(changes))
