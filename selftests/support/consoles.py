"""What becomes of a console, told from its text alone: the watch, the prompts and the diagnosis as
the strategy uses them, without a board that plays it.
"""

import re
from dataclasses import dataclass

from evmperf.boards.console import booted
from evmperf.boards.console.attempt import CameBack, NotReached
from evmperf.boards.console.marks import find
from evmperf.boards.console.record import POWER_ON, ConsoleRecord
from evmperf.boards.console.signs import diagnose
from evmperf.boards.console.watch import Watch
from evmperf.boards.prompts import LOGIN_PROMPT

_HOST_STAMP = re.compile(rb"^\[\d{4}-\d\d-\d\d [\d:.]+\] ?", re.MULTILINE)
_NAMED = {b"<BS>": b"\b", b"<ESC>": b"\x1b", b"<FF>": b"\xff", b"<00>": b"\x00"}
_COUNTDOWN = re.compile(rb"(?:Hit any key to stop|Press \S+ to abort) autoboot[^\n]*\n?")


@dataclass(frozen=True)
class Verdict:
    """`what` is alarm, hang (in a boot loader), back (at U-Boot's prompt), time (no prompt), or
    booted; `cause` its name, `says` the sentence, `root` what the kernel's messages say of it.
    """

    what: str
    cause: str = ""
    kind: str = ""
    says: str = ""
    root: str | None = None
    notes: tuple[str, ...] = ()


def recorded(path):
    """A console that was copied into a text file, as it went over the wire."""
    data = path.read_bytes()
    for name, byte in _NAMED.items():
        data = data.replace(name, byte)
    data = _HOST_STAMP.sub(b"", data).replace(b"\r\n", b"\n")
    if data.rstrip().endswith(b"login:"):
        data = data.rstrip() + b" "
    return data.replace(b"\n", b"\r\n")


def marks(text):
    """The marks of a boot that begins at power-on and says a line each ms."""
    times = enumerate(text.splitlines(keepends=True), 1)
    said = [ConsoleRecord(at * 10**6, at, "<", line) for at, line in times]
    return find([ConsoleRecord(0, 0, "#", POWER_ON.encode()), *said], LOGIN_PROMPT)


def verdict(text, size=115):
    """Feed a boot that begins at power-on in pieces of so many bytes."""
    watch = Watch()
    watch.await_uboot()
    watch.restart()
    countdown = _COUNTDOWN.search(text)
    end = countdown.end() if countdown else len(text)
    if alarm := _fed(watch, text[:end], size):
        return alarm
    if not countdown:
        return _hangs(watch)
    watch.settle()
    rest = re.sub(rb"^(?:\s*=> ?\r?\n?)+", b"", text[end:])
    if alarm := _fed(watch, b"=> boot\r\n" + rest, size):
        return alarm
    said = rest.decode("utf-8", "replace")
    if re.search(LOGIN_PROMPT, said):
        root = booted.shown(said).root
        return Verdict("booted", root=root, notes=tuple(watch.notes))
    if said.endswith("\n=> "):
        return _ended("back", CameBack("boot", watch.output), watch)
    started = re.search(r"Starting kernel|EFI stub: |Linux version \d", said)
    late = NotReached("no login prompt", watch.output)
    return _ended("time", late, watch) if started else _hangs(watch)


def _hangs(watch):
    return _ended("hang", NotReached(f"the boot hangs in {watch.phase}", watch.output), watch)


def _fed(watch, text, size):
    alarms = (watch.feed(text[at : at + size]) for at in range(0, len(text), size))
    alarm = next(filter(None, alarms), None)
    return alarm and Verdict("alarm", alarm.name, str(alarm.kind), str(alarm), None)


def _ended(what, error, watch):
    cause = diagnose(watch.output.rstrip().removesuffix("=>") if what == "back" else watch.output)
    return Verdict(what, cause.name if cause else "", str(error.kind), str(error))
