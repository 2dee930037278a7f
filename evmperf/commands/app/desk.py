"""The desk: finding the board that is there, saying what it can measure now, and measuring it."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.boards import board as boards
from evmperf.boards import modes, scratch
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED
from evmperf.lab.desk import boardfile, identity, ports, software
from evmperf.lab.desk.identity import SshAddress
from evmperf.lab.desk.ports import Voice
from evmperf.lab.tester import LOCAL
from evmperf.measure import boardfile as boardfiles
from evmperf.measure.signals import attend
from evmperf.model.errors import LabError, UsageError
from evmperf.model.replies import WantedSession, answer

Tell = Callable[[str], None]

_ADDRESS = re.compile(r"(?:([\w][\w.-]*)@)?(\[[0-9a-fA-F:.]+\]|[\w][\w.-]*)(?::(\d{1,5}))?")
_POWER = {
    "switch": "the board is power-cycled and left off",
    "hand": "you are asked to switch the board off and on",
    "reset": "the board is reset or rebooted",
}
_QUIET = ("-qq", "--tb=no", "-rN", "--disable-warnings", "-o", "console_output_style=classic")
"""Neither pytest's head nor its counts of what was skipped nor a percentage nor its plugins' warnings."""
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
_RATES = ", ".join(map(str, ports.RATES))
_NO_LOGIN = {
    "U-Boot": (
        "the board is at U-Boot's prompt: type `boot` there (picocom, minicom), and run this again once Linux"
        " asks for a login"
    ),
    "text": (
        "the board is on and gives no login: wait until it has booted; a Linux whose console has none needs "
        "`systemctl enable --now serial-getty@TTY` there"
    ),
    "rescue": (
        "a rescue shell answers, because the root file system was not mounted: look at `cat /proc/cmdline` "
        "(root=) and `ls /dev/mmcblk*` there, and boot again"
    ),
}
"""The next step at what talks on a console without a login."""
_FOLDERS = {"multibench": "multibench", "coremarkpro": "coremark_pro", "coremarkpro_two_core": "coremark_pro"}
"""Benchmarks that lie in a folder of their own, each with its option of the section `system`."""
_ANY = Board(Path("board"), frozenset(), {})
"""A board whose file says nothing, for what benchmarks need on it."""


class FindBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Find the board on this desk: at an `address` (user@host:port), on one of `ports`, by both (the
    console, and SSH for files), or on whatever USB serial port it talks; its file goes into `folder`.

    `user` logs in on a console; `power` is how its power is worked, as options.boot.power says it;
    `tester` is what stands at the other end of its network cable, `local` for this machine.
    """

    folder: str
    address: str = ""
    ports: tuple[str, ...] = ()
    key: str = ""
    user: str = "root"
    password: str | None = None
    power: str = "none"
    tester: str = ""


class FoundBoard(msgspec.Struct, frozen=True, kw_only=True):
    """What the board says that it is, its file (and which one it is like, "" for a board that was
    never seen), how many cases of which benchmarks can be measured now, and what that changes.

    `state` is what it does at the moment, each in words and whether that spoils figures; `steps` are the
    worthiest measurements that are left out, each with the step that brings it.
    """

    where: str
    model: str
    file: str
    os: str = ""
    like: str = ""
    can: dict[str, int] = msgspec.field(default_factory=dict)
    changes: tuple[str, ...] = ()
    state: tuple[tuple[str, bool], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()


class NoBoard(UsageError):
    """There is no board on this desk."""


def find(request: FindBoard, tell: Tell) -> FoundBoard:
    """Find the board, ask it what it is, and write its file.

    Raises UsageError where there is no board or it does not log in (PasswordWanted where a password
    would help), LabError for a way that is broken.
    """
    drivers = {*boardfile.SAFE, *CABLED, *boardfile.STORAGE}
    benchmarks = [b for b in catalogue.benchmarks().values() if b.driver in drivers]
    theirs = catalogue.ti_programs(benchmarks)
    needed = set().union(*map(_needs, benchmarks))
    network = _address(request) if request.address else None
    way = network if network and not request.ports else _voice(request, tell)

    question = "\n".join((identity.question({*theirs, *needed}), modes.QUESTION, scratch.SURVEY))
    said, prompt = identity.ask(way, question, request.password, request.user)
    board = identity.answer(said, prompt)
    if network and not identity.checks_key(network):
        tell(f"The host key of {network.host} is not checked: known_hosts has none for it.")
    if network and network is not way:
        identity.ask(network, "true")  # a console is there, and SSH carries files
    if board.user != "0":
        why = f" ({board.sudo})" if board.sudo else ""
        name = board.login or "the user there"
        raise UsageError(
            f"{name} is not root and gets no sudo without a password{why}, so no benchmark can run: add the "
            f"line `{name} ALL=(ALL) NOPASSWD: ALL` with visudo on the board, or log in as root"
        )
    needs = {"hand": "the board's console", "reset": "" if board.has_systemd else "systemd, or the console"}
    if isinstance(way, SshAddress) and (what := needs.get(request.power)):
        tell(f"--power {request.power} needs {what}: over SSH no boot of this board is timed.")
        request = msgspec.structs.replace(request, power="none")
    for disk in board.unread:
        tell(f"{disk} cannot be read and is left out: look at dmesg on the board, or replace the disk")
    like = boardfile.fitting(board)
    is_here = request.tester.partition(":")[0] == LOCAL
    sections = boardfile.cable(board.links, far=network is not None) if is_here and not like else {}
    measured = {*boardfile.SAFE, *sections, *(CABLED if request.tester else ())}
    absent = {
        benchmark.name: f"not on the board: {', '.join(missing)}"
        for benchmark in benchmarks
        if benchmark.driver in measured and (missing := sorted(_needs(benchmark) - board.tools))
    }
    if not board.tells_boot:
        absent["last_boot"] = "neither systemd nor the kernel's log tells the duration of this boot"
    file = boardfile.write(
        Path(request.folder),
        board,
        way,
        {**boardfile.TWICE, **absent},
        beside=network if network is not way else None,
        power=request.power,
        tester=request.tester,
        sections=sections,
        password=request.password,
    )
    lacking = {*theirs, *needed} - board.tools
    return _found(
        str(file),
        where=f"{way.user}@{way.host}" if isinstance(way, SshAddress) else way.path,
        model=board.model or "a board without a name",
        os=f"{board.os}, Linux {board.kernel}",
        like=like.name if like else "",
        state=(
            *board.state,
            *software.ti_ways(boards.load(like).name if like else "", theirs, lacking, said),
        ),
        steps=_steps(boards.load(file), lacking, _storage(said)),
    )


def _steps(board: Board, missing: Collection[str], storage: str) -> tuple[tuple[str, str], ...]:
    """What is left out, by worth, with the step that brings it; `missing` are programs, `storage` is the
    step to a scratch partition.
    """
    steps = [] if board.features & boardfile.STORAGE else [("Storage writes", storage)]
    steps += [
        (what, step) for what, drivers, step in boardfile.WORTH if not board.features.intersection(drivers)
    ]
    cabled = [b for b in catalogue.benchmarks().values() if b.driver in board.features.intersection(CABLED)]
    lacks = {"on the board": {tool for one in cabled for tool in _needs(one)}.intersection(missing)}
    if board.tester.partition(":")[0] == LOCAL:
        ours = {tool for one in cabled for tool in one.tester_tools}
        lacks["on this machine"] = {tool for tool in ours if not shutil.which(tool, path=_PATH)}
    if lacking := [f"{', '.join(sorted(tools))} {where}" for where, tools in lacks.items() if tools]:
        steps.append(("Network", f"install {' and '.join(lacking)}"))
    if packages := sorted({boardfile.PACKAGES[tool] for tool in missing if tool in boardfile.PACKAGES}):
        line = f"apt-get install --no-install-recommends {' '.join(packages)}"
        steps.append(("Benchmarks of further programs", f"as root on the board: {line}"))
    return tuple(steps)


def _storage(survey: str) -> str:
    """The step to storage benchmarks: the option for a scratch partition that is there, or its command."""
    try:
        there = scratch.present(survey)
        if there is None:
            return scratch.plan(survey).proposal
    except UsageError as error:
        return str(error)
    disk = there.disk
    return (
        f"{there.device} ({there.mib} MiB) is there for them to overwrite: `evmperf board new NAME --from "
        f"desk`, then add to that file the feature {disk.driver} and the option "
        f"`{disk.driver}: {{device: /dev/{disk.name}, scratch: {there.device}}}`"
    )


def _needs(benchmark: Benchmark) -> set[str]:
    """Programs, and folders with their path, that the benchmark needs on the board."""
    folder = _FOLDERS.get(benchmark.name)
    folders = [getattr(_ANY.options.system, folder)] if folder else []
    return {*benchmark.tools_on(_ANY), *folders}


def named(given: str) -> FoundBoard:
    """A board that has a file, and what can be measured on it by that; raises UsageError."""
    board = boardfiles.named(given)
    return _found(str(board.file), where=board.name, model=board.options.board.title, like=board.file_name)


def measure(file: str, results: str, select: str = "") -> tuple[int, Path | None]:
    """Measure what the file can, on this terminal; returns pytest's exit status and the run's folder, None
    without one.
    """
    with tempfile.TemporaryDirectory() as folder:
        reply_file = Path(folder, "answer.json")
        session = WantedSession(
            board=file, results=results, select=select, profile="quick", answer=str(reply_file)
        )
        status = attend(subprocess.Popen([*session.command(), *_QUIET]))
        reply = answer(reply_file, status)
    run = Path(results) / reply.run if reply.run else None
    return status, run if run and run.is_dir() else None


def _address(request: FindBoard) -> SshAddress:
    match = _ADDRESS.fullmatch(request.address)
    if not match:
        raise UsageError(f"{request.address!r} is not an address: write root@HOST or root@HOST:PORT")
    if request.key and not os.access(request.key, os.R_OK):
        raise UsageError(f"--key {request.key}: there is no such file, or this user may not read it")
    return SshAddress(match[1] or "root", match[2].strip("[]"), int(match[3] or 22), request.key)


def _voice(request: FindBoard, tell: Tell) -> Voice:
    """The console: the port on which a board talks; raises UsageError."""
    candidates = [Voice(str(Path(path).absolute())) for path in request.ports] or ports.usb_ports()
    if not candidates:
        raise NoBoard(
            "no board found: this machine has no USB serial port; plug in the console's cable, or for a "
            "board on the network: evmperf desk root@ADDRESS"
        )
    voices, troubles = ports.listen(candidates)
    for trouble in troubles:
        tell(trouble)
    for voice in voices:
        what = {"": "nothing", "garbled": f"unreadable output at each of {_RATES} baud"}.get(voice.talks, "")
        talks = {"text": "output without a prompt", "rescue": "a rescue shell"}.get(voice.talks, voice.talks)
        what = what or f"{talks} at {voice.baud} baud"
        usb = f" ({voice.usb})" if voice.usb else ""
        tell(f"{voice.path}{usb}: {what}")
    talking = [voice for voice in voices if voice.talks not in ("", "garbled")]
    talking = [voice for voice in talking if voice.talks != "text"] or talking
    if not talking:
        if garbled := next((voice for voice in voices if voice.talks), None):
            raise LabError(
                f"{garbled.path}: the output is unreadable at each of {_RATES} baud: check that the "
                f"adapter has the console's voltage (1.8 or 3.3 V) and its ground; another rate is `speed` "
                f"of RawSerialPort in a board file of your own"
            )
        if troubles and not voices:
            raise LabError(troubles[0])
        raise NoBoard(
            "no board answers on these ports: is it switched on, and has it started Linux or U-Boot? A Linux "
            "without a login on its console is silent, too (serial-getty@TTY). Some boards have several "
            "consoles; a silent one may be another UART"
        )
    if len(talking) > 1:
        names = " and ".join(voice.path for voice in talking)
        raise UsageError(f"{names} both have a board: choose one with --port")
    (voice,) = talking
    if step := _NO_LOGIN.get(voice.talks):
        raise UsageError(f"{voice.path}: {step}")
    return voice


def _found(file: str, **known: Any) -> FoundBoard:
    """A board with what can be measured by its file, and what that changes."""
    board = boardfiles.named(file)
    can: dict[str, int] = {}
    for benchmark in catalogue.benchmarks().values():
        if count := sum(not benchmark.unsupported(board, case) for case in benchmark.cases("quick")):
            can[benchmark.name] = count
    changes = [_POWER[board.power]] if board.power in _POWER else []
    for driver in sorted(board.features & boardfile.STORAGE):
        if scratch := getattr(getattr(board.options, driver, None), "scratch", ""):
            changes.append(f"{scratch} is overwritten")
    return FoundBoard(file=file, can=can, changes=tuple(changes), **known)
