"""Runs one step of a benchmark in a board's shell, and fetches its output intact.

The step writes files into a folder on the board. They return as a compressed archive in base64,
a third of the size on a serial console. Its checksum (gzip's CRC-32) detects kernel messages;
the archive is then fetched again without repeating the step. A long archive comes over the
machine's network if the shell has `beside`.
"""

import base64
import getpass
import re
import secrets
import shlex
import socket
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from evmperf.measure.bench import Shell, StepOutput
from evmperf.model import limits
from evmperf.model.errors import LabError, RefusedOutput, ToolError
from evmperf.model.places import FURTHER_PROGRAMS, STEP_FOLDER, is_plain
from evmperf.model.shelltext import ShellTexts

LOG = "log"
"""Name of the output file with the text that the step's commands printed."""

_FETCHES = 3
_FETCH_TIMEOUT_S = 300.0
_TYPED_LIMIT = 900
"""Longest command typed in one line: busybox ash edits lines of at most 1024 characters."""

_BESIDE = re.compile(r"beside ([0-9]{1,15})")
_BESIDE_BYTES = 4096
"""Archives up to this size (bytes) use the console: 0.5 s at 115200 baud, like a transfer."""

_SHELL = ShellTexts(__file__)
_WRAPPER = Path(__file__).with_name("step.sh").read_text("ascii").partition("\n\n")[2]

# In a shell without job control the step shares the shell's process group, which must live.
_KILL = (
    "read -r g <@STEP_FOLDER@/group && read -r a b c d own x </proc/$$/stat && "
    '{ [ "$g" = "$own" ] || kill -9 -$g; }; : >@STEP_FOLDER@/group'
)

_STEP = f"step-{secrets.token_hex(2)}"
"""The wrapper's file there, of this process: another session on the machine removes it."""
_SOURCE = f". @STEP_FOLDER@/{_STEP}"

_QUIET_S = 60
"""So long after its last step a session on another host still holds the machine."""
_HEAD = re.compile(r"step ([0-9]{1,3}) ([0-9]{1,10}\.[0-9]{1,9}) ([0-9]{1,10}\.[0-9]{1,9})")

_BLOCK = 512
_FILE, _OTHERS = b"0\0", b"123456xg"
"""Kinds of tar entries: files, and skipped ones (links, devices, folders, notes)."""


class UnfitOutput(RefusedOutput):
    """A step's output arrived intact but is unacceptable: fetching it again does not help."""


def install(shell: Shell, folder: str = STEP_FOLDER) -> None:
    """Take the machine and install the wrapper there, once per boot. Raises LabError where another session
    measures, ToolError on failure.
    """
    reply = shell.run(_taking(folder), 10)
    if holder := re.match(r"held by (\S.{0,99})", reply.text):
        raise LabError(
            f"the board is in use: {holder[1]} measures there (its {folder}/holder): let that session end; "
            f"the board is free {_QUIET_S} s after its last step"
        )
    if not reply.status:
        text = shlex.quote(wrapper(folder))
        reply = shell.run(f"printf %s {text} >{folder}/{_STEP}", 10)
    if reply.status:
        raise ToolError(f"{folder} cannot be written there: {reply.text.strip()[:200]}")


def leave(shell: Shell, folder: str = STEP_FOLDER) -> None:
    """Remove our files from a machine that stays on; those of another session stay."""
    shell.run(_SHELL("leave", folder=folder, step=_STEP), 10)


def _taking(folder: str) -> str:
    host, user = (re.sub(r"[^a-zA-Z0-9.-]", "", name) for name in (socket.gethostname(), getpass.getuser()))
    who = f"{user}@{host} since {time.strftime('%H:%M UTC', time.gmtime())}"
    return _SHELL("take", folder=folder, step=_STEP, host=host or "unnamed", who=who, quiet_s=_QUIET_S)


def wrapper(folder: str = STEP_FOLDER) -> str:
    """The shell text that, sourced with a step's command, runs it and prints its outputs."""
    return _in(folder, _WRAPPER.replace("@FURTHER_PROGRAMS@", FURTHER_PROGRAMS))


def run(
    shell: Shell,
    command: str,
    timeout_s: float,
    *,
    quiet: bool = False,
    folder: str = STEP_FOLDER,
    label: str = "",
) -> StepOutput:
    """Run `command` (POSIX sh) with `$OUT` set, and fetch its files from there.

    With `quiet`, fetches nothing after success. `label` names the step in errors.

    Raises RefusedOutput if three fetches are damaged, LabError if another session took the machine, and
    the shell's errors.
    """
    typed = shlex.quote(command)
    if len(typed) > _TYPED_LIMIT:
        typed = _upload(shell, command, folder)
    source = _in(folder, _SOURCE)
    mode = " quiet" if quiet else " beside" if shell.files else ""
    try:
        reply = shell.run(f"set -- {typed}{mode}; {source}", timeout_s)
    except ToolError:
        # Ctrl-C returned the prompt, but a process that ignores it would disturb the next step.
        shell.run(_in(folder, _KILL), 10)
        raise
    if reply.status and f"/{_STEP}" in reply.text:
        raise LabError(
            f"{folder}/{_STEP} is gone from the machine: another evmperf began to measure there; "
            f"let one of the two end first"
        )
    for fetches in range(1, _FETCHES + 1):
        try:
            text = _with_archive(shell, reply.text, folder)
            return replace(decode(text, bare=quiet), fetches=fetches)
        except UnfitOutput as error:
            raise UnfitOutput(f"{label or 'a step'}: {error}", error.raw) from None
        except RefusedOutput as error:
            if fetches == _FETCHES:
                raise RefusedOutput(f"{label or 'a step'}: {error} ({_FETCHES} times)", reply.text) from None
        reply = shell.run(f"set --; {source}", _FETCH_TIMEOUT_S)
    raise AssertionError("unreachable: the last fetch returns or raises")


def _with_archive(shell: Shell, text: str, folder: str) -> str:
    """The wrapper's answer with its archive over the network; raises RefusedOutput: use the console."""
    head, _, body = text.partition("\n")
    left = _BESIDE.fullmatch(body.strip())
    if not left:
        return text
    if int(left.group(1)) > limits.STEP_BYTES:
        raise UnfitOutput(_too_much(f"an archive of {left.group(1)} bytes"), text)
    archive = shell.files.get(f"{folder}/archive") if shell.files else None
    if archive is None or len(archive) != int(left.group(1)):
        raise RefusedOutput("the step's output arrived damaged over the network", text)
    return f"{head}\n{base64.b64encode(archive).decode()}"


def decode(text: str, *, bare: bool = False) -> StepOutput:
    """What the wrapper's output says; raises RefusedOutput for
    damage, UnfitOutput for a name that is not plain or more than `limits` allows.

    With `bare`, a success may come without files.
    """
    head, _, body = text.partition("\n")
    match = _HEAD.fullmatch(head.strip())
    if not match:
        raise RefusedOutput(f"the step's first line is garbled: {head[:120]!r}", text)
    files: dict[str, str] = {}
    try:
        if not (bare and match.group(1) == "0" and not body.strip()):
            packed = base64.b64decode("".join(body.split()), validate=True)
            for name, data in _entries(_unpacked(packed)):
                if not is_plain(name):
                    raise UnfitOutput(f"the step left a file {name!r}: no plain name")
                files[name] = data.decode("utf-8", "replace")
                if len(files) > limits.STEP_FILES:
                    raise UnfitOutput(_too_much(f"more than {limits.STEP_FILES} files"))
    except UnfitOutput as error:
        raise UnfitOutput(str(error), text) from None
    except (ValueError, zlib.error) as error:
        raise RefusedOutput(f"the step's output came back damaged ({error})", text) from None
    began, ended = float(match.group(2)), float(match.group(3))
    return StepOutput(int(match.group(1)), files, ended - began, 1, began)


def _unpacked(packed: bytes) -> bytes:
    """Unpacked data; raises ValueError or zlib.error for damage, UnfitOutput for too much."""
    unpacker = zlib.decompressobj(wbits=31)
    archive = unpacker.decompress(packed, limits.STEP_BYTES + 1)
    if len(archive) > limits.STEP_BYTES:
        raise UnfitOutput(_too_much(f"more than {limits.mib(limits.STEP_BYTES)}"))
    if not unpacker.eof or unpacker.unused_data.strip(b"\0"):
        raise ValueError("the archive does not end where it should")
    return archive


def _too_much(what: str) -> str:
    return f"the step left {what}: it is not unpacked, only the console's output is kept"


def _entries(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in a tar (POSIX ustar, GNU's is alike for plain names).

    Does not use tarfile, which trusts entries larger than the archive (sparse files) and long
    names. Raises ValueError for damage, UnfitOutput for those.
    """
    at = 0
    while head := archive[at : at + _BLOCK].rstrip(b"\0"):
        name = head[:100].split(b"\0")[0].decode("ascii", "replace").removeprefix("./")
        digits, kind = head[124:136].strip(b"\0 "), head[156:157]
        if not re.fullmatch(rb"[0-7]{1,12}", digits):
            raise ValueError(f"{name!r} has no size")
        size, at = int(digits, 8), at + _BLOCK
        data = archive[at : at + size]
        if len(data) != size:
            raise ValueError(f"{name!r} is cut")
        if kind in _FILE:
            split = head[257:263] == b"ustar\0" and head[345:500].strip(b"\0")
            yield f".../{name}" if split else name, data
        elif kind not in _OTHERS:
            raise UnfitOutput(f"the step left an entry {name!r} of kind {kind!r}: no plain file")
        at += -(-size // _BLOCK) * _BLOCK


def _in(folder: str, text: str) -> str:
    return text.replace("@STEP_FOLDER@", folder).replace("@BESIDE_BYTES@", str(_BESIDE_BYTES))


def _upload(shell: Shell, command: str, folder: str) -> str:
    """Copy a long command to the board, faster than by pieces if possible; returns what to type."""
    pieces = [command[i : i + 600] for i in range(0, len(command), 600)]
    target = f"{folder}/command"
    if shell.files and shell.files.put(target, command.encode()):
        pieces = []
    for index, piece in enumerate(pieces):
        arrow = ">>" if index else ">"
        reply = shell.run(f"printf %s {shlex.quote(piece)} {arrow}{target}", 10)
        if reply.status:
            raise ToolError(f"{target} cannot be written there: {reply.text.strip()[:200]}")
    return f'"$(cat {target})"'
