"""Watching the console, as its bytes arrive, for the signs of `evmperf.boards.console.signs`: a dead board is
named within a second instead of after a time-out.
"""

import re

from evmperf.boards.console import signs
from evmperf.boards.console.signs import Alarm, Stage, events, patterns

_OVERLAP = 2048
"""Bytes kept between chunks for texts cut in two: more than a line of the kernel's (1 KiB)."""
_MEMORY = 1 << 18
"""Bytes of this boot in which a failure's cause is looked for."""
_REASON = 4096
"""Bytes before an event in which it is said why it came."""
_CONFIRMED_WITHIN = 700
"""Bytes after a boot loader's banner in which its next lines must come: a program may print a
banner, too (`strings /dev/mtd0`, `fw_printenv ver`), but not what a boot loader says after it.
"""
_MOST_SPLS = 4
"""Banners of SPL before U-Boot's: R5 and A53, each of which may start twice (erratum i2331)."""
_MOST_UBOOTS = 3
"""Banners of U-Boot before its prompt: it may restart itself once to boot from another medium."""


_HANDED_OVER = re.compile(r"BL31|Starting ATF|OP-TEE|Image loading done|ErrataID:i2331")
"""What is said between two banners of SPL of which the second is no restart, or a known one."""
_STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[ *\w+\])? ")
_RESET = "silent reset"


class Watch:
    """Follows one boot; `feed` returns its first alarm. Boot loaders are free until `settle` or Linux; while
    Linux is suspended SPL may run, as some boards wake up through it.
    """

    def __init__(self) -> None:
        self._awaited = False
        self.restart()

    def restart(self) -> None:
        """Begin anew: the power was just switched on."""
        self._tail = b"\n"  # what comes first begins a line
        self._stage = Stage.LOADING if self._awaited else Stage.FREE
        self._awaited = False
        self._asleep = False
        self._alarmed = False
        self._spls = self._uboots = 0
        self._seen: set[str] = set()
        self._output = bytearray()
        self._again = ""
        self._banner_at = 0
        self.notes: list[str] = []
        self.rest = 0  # bytes that came behind an alarm in one piece with it
        self._suspect: str | None = None
        self._suspect_at = 0
        self._offset = 0

    def await_uboot(self) -> None:
        """From the next power-on on, what keeps a boot from U-Boot's prompt is an alarm."""
        self._awaited = True

    def settle(self) -> None:
        """From now on a boot loader's banner is a reset: its prompt has been reached."""
        if self._stage is not Stage.UBOOT:
            self._tail = b""
            self._stage = Stage.UBOOT
            self._output.clear()

    def arrive(self) -> None:
        """The prompt of Linux has been reached: from now on programs are at work."""
        self._stage = Stage.WORKING

    @property
    def output(self) -> str:
        """What the board said last: since its power-on, or since U-Boot's prompt."""
        return self._output.decode("utf-8", "replace")

    @property
    def phase(self) -> str:
        """The program of the boot that runs, "" where none has said its name."""
        return "U-Boot" if self._stage is Stage.UBOOT else signs.phase(self.output)

    def feed(self, data: bytes) -> Alarm | None:
        """Look at bytes that just arrived."""
        if self._alarmed:
            return None
        window = self._tail + data
        base = self._offset - len(self._tail)
        self._offset += len(data)
        self._output += data
        if len(self._output) > _MEMORY:
            del self._output[: _MEMORY // 2]
        begin = 0
        for match in events().finditer(window):
            # What was seen must not be seen again in another light; but the end of a line is the
            # beginning of the next.
            begin = match.end() - (match.group()[-1:] in b"\r\n")
            text = match.group().decode("utf-8", "replace").strip()
            if match.lastgroup in ("panic", "oops"):
                text = _STAMP.sub("", text)
            if alarm := self._judge(str(match.lastgroup), text, base + match.end()):
                self._alarmed = True
                self.rest = len(window) - match.end()
                return alarm
        # What may still become an event begins with its line.
        self._tail = window[max(begin, window.rfind(b"\n"), len(window) - _OVERLAP) :]
        return None

    def _between(self, begin: int, end: int) -> str:
        """What the board said between two bytes, as far as it is still known."""
        output = self._output[max(self._index(begin), 0) : self._index(end)]
        return output.decode("utf-8", "replace")

    def _index(self, at: int) -> int:
        return len(self._output) - (self._offset - at)

    def _reason(self, text: str, at: int, explained: str = "last") -> str:
        """Why an event came that ends at a byte."""
        before = self._between(0, at).rstrip().removesuffix(text)
        if explained == "cause" and (cause := signs.diagnose(before)):
            return cause.text
        lines, end, _ = before[-_REASON:].rpartition("\n")
        return signs.reason(lines + end, first=explained == "first")

    def _judge(self, event: str, text: str, at: int) -> Alarm | None:
        """Take note of an event that ends at a byte; returns its alarm."""
        if sign := patterns().signs.get(event):
            known = sign.unless and re.search(sign.unless, self.output, re.MULTILINE)
            if known or self._stage not in sign.stages:
                return None
            if sign.twice and event not in self._seen:
                self._seen.add(event)
                return None
            return sign.seen(text, self._reason(text, at, sign.explained) if sign.explained else "")
        if event in ("asleep", "awake"):
            self._asleep = event == "asleep"
        elif event in _TURNS:
            return _TURNS[event](self, text, at)
        elif self._stage is Stage.LOADING or (event == "spl" and self._stage is Stage.UBOOT):
            return self._banner(event, text, at)
        elif event == "uboot" or not self._asleep:
            self._suspect, self._suspect_at = text, at
        return None

    def _confirm(self, _text: str, at: int) -> Alarm | None:
        """A line of a boot loader: what looked like its banner was one."""
        suspect, self._suspect = self._suspect, None
        if suspect is None or self._stage is Stage.FREE:
            return None
        if at - self._suspect_at > _CONFIRMED_WITHIN:
            return None
        return Alarm(_RESET, suspect, after=self._reason(suspect, self._suspect_at))

    def _login(self, text: str, at: int) -> Alarm | None:
        again, self._again = self._again, ""
        if self._stage is Stage.WORKING and again:
            return Alarm(_RESET, again)
        if self._stage is Stage.LINUX:
            self._stage = Stage.WORKING
        return self._linux(text, at) if self._stage is Stage.LOADING else None

    def _linux(self, text: str, at: int) -> Alarm | None:
        """Linux runs, or says that it does."""
        stage, starts = self._stage, text.startswith(("Booting", "Starting"))
        if stage is Stage.WORKING:
            # `dmesg` prints it, too; but no login after it.
            self._again = text if starts else self._again
            return None
        if "login:" not in text:
            self._stage = Stage.LINUX
        if stage is not Stage.LOADING:
            # Before the first program a console that is new may get the kernel's log once more.
            again = stage is Stage.LINUX and starts
            if again and signs.telling("userland").search(self._between(0, at)):
                after = self._reason(text, at)
                return Alarm(_RESET, f"a second kernel starts: {text}", after=after)
            return None
        if not self._uboots and signs.garbled_piece(self.output):
            return patterns().ends["garbled"].seen(text, count="part")
        which = "autoboot" if self._uboots else "falcon" if self._spls else "no_uboot"
        return patterns().ends[which].seen(text)

    def _banner(self, event: str, text: str, at: int) -> Alarm | None:
        if self._stage is Stage.UBOOT:  # where nothing but SPL says so
            return Alarm(_RESET, text, after=self._reason(text, at))
        passed, self._banner_at = self._between(self._banner_at, at), at
        handed_over = event == "uboot" or _HANDED_OVER.search(passed)
        if self._uboots or (self._spls and not handed_over):
            self.notes.append(f"the boot loader started again after {self._reason(text, at)!r}")
        if event == "uboot":
            self._uboots += 1
            self._spls = 0
        else:
            self._spls += 1
        if self._spls > _MOST_SPLS or self._uboots > _MOST_UBOOTS:
            return patterns().ends["loop"].seen(text, self._reason(text, at))
        return None


_TURNS = {"loader": Watch._confirm, "login": Watch._login, "linux": Watch._linux}
