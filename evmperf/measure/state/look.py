"""One look at a machine: the shell text that reads what matters to a driver, and what it says.

One awk reads all files: each program started costs a slow board milliseconds. What is not there is
passed over, so the same text serves all boards.
"""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace

from evmperf.benchmarks.families.scratch import MOUNT_POINT
from evmperf.boards import yamlfile
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED
from evmperf.measure.state.finding import cpus
from evmperf.measure.state.machine import COMMAND
from evmperf.model import limits
from evmperf.model.concealing import concealed
from evmperf.model.state import State, Value

FILE = "shown"
"""The output file of a look."""
SECONDS = 20.0
"""After which a look counts as hung."""

_TICKS = 100
"""Of the kernel's USER_HZ in a second, in /proc/stat, /proc/PID/stat and time_in_state."""

_GRAIN = 20
"""Ticks by which two files that are read one after the other may differ."""
_TELLING_S = 1.0
"""Seconds between two looks below which the grain of their counters tells nothing of shares."""
_MOST_BESIDE = 5
"""Processes that are kept by name."""

_NET = (*CABLED, "pcie")


_READ = SimpleNamespace(**yamlfile.own("measure/state/look.yaml"))
"""Files by name, shell text, and patterns of names and lines."""


def script(board: Board, driver: str) -> str:
    """The shell text (POSIX sh, busybox too) of a look for a driver; what it says is in FILE.

    Where a device is in sysfs is found out once a boot, and kept below $F.
    """
    disk = board.text(driver, "scratch") if driver in _READ.above else ""
    name = board.options.cable(driver).interface if driver in _NET else ""
    name = name if _INTERFACE.fullmatch(name) else ""
    kept = f"$F/files_{driver}"
    lines = [_READ.mount]
    lines.append(f"if [ -e {kept} ]; then read -r w <{kept}; else w=")
    if disk:
        lines += [
            f"p=$(readlink -f {shlex.quote(disk)}); q=$(readlink -f /sys/class/block/${{p##*/}})",
            "[ ! -e $q/partition ] || q=${q%/*}",
            f'for f in {_READ.queue}; do w="$w $q/queue/$f"; done; w="$w $q/stat"',
            f'for f in {_READ.limits}; do w="$w $q/bdi/$f"; done',
            _READ.walk.replace("@ABOVE@", _READ.above[driver]).replace("@ONCE@", f"$F/once_{driver}"),
        ]
    if name:
        lines += [
            f"q=$(readlink -f /sys/class/net/{name})",
            # A disk beside the card is at another link.
            _READ.walk.replace("@ABOVE@", _READ.link if disk else f"{_READ.link} {_READ.pci}"),
            f'for f in {_READ.cable}; do w="$w $f,{name}"; done',
            f'for f in {_READ.wire}; do w="$w /sys/class/net/{name}/$f"; done; w="$w {_READ.network}"',
        ]
    # What the last step of the case before said of the file system that it unmounted, see MOUNTED.
    lines_read = f"{_READ.always} {_READ.also.get(driver, '')} $w $F/mounted"
    kernel = f"{_READ.kernel}|{_READ.logged.get(driver, '@')}"
    look = f"{_read(lines_read, kernel, f'$F/logged_{driver}')}; rm -f $F/mounted"
    return "\n".join([*lines, f'echo "$w" >{kept}', "fi", look, _READ.clocks if driver == "ospi" else "true"])


_INTERFACE = re.compile(r"[\w.:-]{1,15}")


def script_beside(board: Board, driver: str) -> str:
    """The shell text of a look at the tester's end of a driver's cable; "" where it has none."""
    address = board.options.cable(driver).tester_address if driver in _NET else ""
    if not re.fullmatch(r"[0-9a-fA-F.:]{3,45}", address):
        return ""
    find = f"ip -o addr | awk -v a={address} 'index($4, a \"/\") == 1 {{ print $2; exit }}'"
    return "\n".join(
        [
            f"i=$({find}); n=/sys/class/net/${{i:-none}}",
            f'w=; for f in {_READ.cable}; do w="$w $f,${{i:-none}}"; done',
            f'for f in {_READ.wire}; do w="$w $n/$f"; done',
            _read(
                f"/proc/uptime /proc/stat /proc/net/dev /proc/pressure/cpu /proc/$$/status {_READ.network} "
                "$n/speed $n/duplex $n/mtu $w"
            ),
            "true",
        ]
    )


def _read(files: str, kernel: str = "", logged: str = "") -> str:
    """Shell text that reads files, and with `kernel` the lines of the kernel's log newer than the one
    `logged` knows.
    """
    # LAVA's test shell runs each step in a process of its own, and says its number.
    awk = 'awk -v "ours=(2|$$|$PPID|$S|$B)" -v shell=$S'
    if kernel:
        # -S: one system call instead of one a line; busybox does that anyway, and knows no -S.
        awk = f'{{ dmesg -S -r || dmesg -r; }} 2>/dev/null | {awk} -v "kernel={kernel}" -v "logged={logged}"'
        files = f"{files} /proc/self/fd/0"
    # What looks is a child of the subshell that a step is. mawk dies of a process that ends while it is read.
    who = "S=${EVM_SHELL:-$PPID}; read -r B x </proc/self/stat"
    return f'{who}; look() {{ {awk} {shlex.quote(_READ.awk)} {files} >"$OUT/{FILE}"; }}; look || look'


MOUNTED = (
    f'm=$(grep -s " {MOUNT_POINT} " /proc/mounts) && set -- $m && '
    """echo "$3 $4 $(tr '\\n' , </proc/fs/ext4/${1##*/}/options)" 2>/dev/null >$F/mounted; """
)
"""Shell text before what unmounts a case's file system: type and options, those by default too, for the look
after it.
"""


@dataclass(frozen=True)
class BoardLook:
    """What a machine showed at one moment.

    `ticks` are hundredths of a second of CPU time by process (number and name), `log` lines of the kernel,
    `uptime_s` its clock, `read_s` that when all but the kernel's log was read. `earliest_s` and `latest_s`
    bound the moment on the lab's clock.
    """

    shown: Mapping[str, Value] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    ticks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    uptime_s: float | None = None
    read_s: float | None = None
    earliest_s: float = 0.0
    latest_s: float = 0.0
    log: tuple[str, ...] = ()


_NAMES = [(re.compile(file), name) for file, name in _READ.names.items()]
_FORMS = {name: re.compile("|".join(lines)) for name, lines in _READ.forms.items()}
_LISTS, _COUNTERS = (re.compile("|".join(patterns)) for patterns in (_READ.lists, _READ.counters))
_LOG = "/proc/log"
_LOG_LINES, _LOG_CHARS = 40, 160
_PROCESS = re.compile(r"/proc/(\d{1,10})/stat")
_LINE = re.compile(r"(/\S{1,300}|ethtool -\w \S{1,15}|tc (?:filters|qdisc show dev) \S{1,15}) (.*)")
_PAIR = re.compile(r"[#\s]*([^:\t]{1,60}?)(?:[:\t]| (?=\S+$))\s*(\S.*?)(?: \[requested \w+\])?")


def parse(text: str) -> BoardLook:
    """What the lines of a look say; a line of no known form is passed over.

    Of the folders above a device, the nearest that has a value says it.
    """
    shown: dict[str, Value] = {}
    counters: dict[str, int] = {}
    ticks: dict[tuple[str, str], int] = {}
    uptime_s = read_s = None
    log: list[str] = []
    for line in map(_LINE.fullmatch, text.splitlines()[: limits.LOOK_LINES]):
        if line is None:
            continue
        if process := _PROCESS.fullmatch(line[1]):
            used, _, name = line[2].partition(" ")
            if (number := _number(used)) is not None:
                ticks[process[1], name[:32]] = number
            continue
        if line[1] == _LOG:
            log.append(line[2][:_LOG_CHARS])
            continue
        for name, value in _named(line[1], line[2]):
            number = _number(value)
            if name == "uptime":
                uptime_s = float(value)
            elif name == "read":
                read_s = float(value)
            elif name.startswith(COMMAND) and concealed(value) != value:
                continue  # a command with a password is nobody's to keep, or to start again
            elif not _COUNTERS.match(name):
                shown.setdefault(name, value[: limits.LOOK_CHARS] if number is None else number)
            elif number is not None:
                counters.setdefault(name, number)
    return BoardLook(shown, counters, ticks, uptime_s, read_s, log=tuple(log[:_LOG_LINES]))


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def _named(file: str, line: str) -> list[tuple[str, str]]:
    """The names and values of one line of a file."""
    for pattern, name in _NAMES:
        if place := pattern.fullmatch(file):
            base = place.expand(name)
            if form := _FORMS.get(base):
                fields = form.fullmatch(line)
                groups = fields.groupdict() if fields else {}
                return [(n.replace("disk_", "disk."), value) for n, value in groups.items() if value]
            if not _LISTS.fullmatch(base):
                return [(base, line.strip())]
            pair = _PAIR.fullmatch(line)
            return [(f"{base}.{_UNNAMED.sub('_', pair[1])}", pair[2].strip())] if pair else []
    return []


_UNNAMED = re.compile(r"[^\w.-]+")


def between(before: BoardLook, after: BoardLook, clock: tuple[float, float] | None = None) -> State:
    """The state around a case from the looks before and after it, on one boot."""
    names = [*before.shown, *(name for name in after.shown if name not in before.shown)]
    # Counters of errors are shown only once there is one.
    counted = {name: count - before.counters.get(name, 0) for name, count in after.counters.items()}
    ran = {key: ticks - before.ticks.get(key, 0) for key, ticks in after.ticks.items()}
    then, now = before.uptime_s, after.uptime_s
    # A process gets the whole life of a child that ends: more than all CPUs can do is none of this case's.
    online = cpus(after.shown.get("cpu.online"))
    spent_s = now - then if now is not None and then is not None else 0.0
    most = _TICKS * online * spent_s + _GRAIN if online and spent_s > _TELLING_S else math.inf
    ran = {key: ticks for key, ticks in ran.items() if ticks <= most}
    return State(
        shown=before.shown,
        changed={n: after.shown.get(n) for n in names if after.shown.get(n) != before.shown.get(n)},
        counted={name: rise for name, rise in counted.items() if rise > 0},
        beside={
            f"{name} ({number})": ticks / _TICKS
            for (number, name), ticks in sorted(ran.items(), key=lambda item: -item[1])[:_MOST_BESIDE]
            if ticks > 0
        },
        seconds=None if then is None or now is None else round(now - then, 2),
        clock=clock,
        log=(*after.log[:_LOG_LINES], *after.log[_LOG_LINES:][-_LOG_LINES:]),
    )
