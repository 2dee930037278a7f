"""What differs between two runs, or two sides of several runs each, in everything known of them.

Facts are those of `run.json` and the documents in the run's `facts/` (evmperf.measure.documents).
With several runs a side, only what holds for all of a side counts: what changes from boot to boot
explains nothing. Sorted by what is likely to matter for a figure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from evmperf.boards import yamlfile
from evmperf.measure.documents import FOLDER
from evmperf.measure.runs import spool
from evmperf.model.run import Run

_HOT_MILLIDEGREES = 5000
"""Temperatures nearer to each other than this explain nothing."""


_RULES = SimpleNamespace(**yamlfile.own("measure/runs/differences.yaml"))
"""Words by area, and words in a row."""
_ORDER = {area: number for number, area in enumerate(_RULES.areas)}
_AREA = {fact: area for area, facts in _RULES.areas.items() for fact in facts.split()}
_SEPARATELY = _RULES.separately.split()
_COSTLY, _FOLLOWS = (
    tuple(f"CONFIG_{word}" for word in words.split()) for words in (_RULES.costly, _RULES.follows)
)


@dataclass(frozen=True)
class Difference:
    """One thing that differs: `a` and `b` as text, "" where a side does not have it."""

    area: str
    what: str
    a: str
    b: str


Flat = dict[tuple[str, str], str]
"""Everything known of one run: area and name to text."""


def between(a: Sequence[Path], b: Sequence[Path], *, nights: bool = False) -> list[Difference]:
    """The differences between the runs of two sides. Of `nights`, B's after A's, the texts are those of the
    last run of A and the first of B. Raises UsageError for a folder without a run.
    """
    sides = ([_of_run(spool.read_run(f), _documents(f)) for f in side] for side in (a, b))
    return _compared(*sides, nights=nights)


def _compared(a: Sequence[Flat], b: Sequence[Flat], *, nights: bool) -> list[Difference]:
    names = dict.fromkeys(name for flat in (*a, *b) for name in flat)
    overwritten = _overwritten([*a, *b])
    differences = []
    for area, what in names:
        if area == _MESSAGES and what in overwritten:
            continue
        ours, theirs = ({flat.get((area, what), "") for flat in side} for side in (a, b))
        if ours & theirs:
            continue
        if area in _DOCUMENTED and not all(any(name == area for name, _ in flat) for flat in (*a, *b)):
            continue  # no such document: that is not known, and no difference
        if nights:
            ours, theirs = ({flat.get((area, what), "")} for flat in (a[-1], b[0]))
        texts = (" or ".join(sorted(side - {""})) for side in (ours, theirs))
        differences.append(Difference(area, what, *texts))
    differences.sort(
        key=lambda one: (
            _ORDER[one.area],
            one.what.startswith(_FOLLOWS) - one.what.startswith(_COSTLY),
            one.what,
        )
    )
    return differences


_MESSAGES = "kernel messages"
_FIRST_MESSAGES = ("Booting Linux", "Linux version")
_MOSTLY = 0.9


def _overwritten(flats: Sequence[Flat]) -> set[str]:
    """Messages that some run cannot have, because the kernel's ring buffer overflowed and its log
    begins late: those of another run up to where that log begins.

    Where it begins is not told by its first message alone, which may come a second time in the
    other run; it is the last place before which nearly nothing is in that log.
    """
    logs = [[what for area, what in flat if area == _MESSAGES] for flat in flats]
    lost: set[str] = set()
    for late in logs:
        if not late or any(message.startswith(_FIRST_MESSAGES) for message in late):
            continue
        kept = set(late)
        for other in logs:
            end = missing = 0
            for number, message in enumerate(other, 1):
                missing += message not in kept
                if missing >= _MOSTLY * number:
                    end = number
            lost |= set(other[:end]) - kept
    return lost


def _documents(folder: Path) -> dict[str, str]:
    files = {name: folder / FOLDER / name for name in _DOCUMENTS}
    return {
        name: file.read_text(encoding="utf-8", errors="replace")
        for name, file in files.items()
        if file.is_file()
    }


def _of_run(run: Run, documents: Mapping[str, str]) -> Flat:
    flat = {(area, what): text for area, what, text in _facts(run) if text}
    for name, document in documents.items():
        area, read = _DOCUMENTS[name]
        flat |= {(area, what): value or "yes" for what, value in read(document)}
    return flat


def _facts(run: Run) -> Iterator[tuple[str, str, str]]:
    yield "image", "release", run.release
    yield "board", "name", run.board
    yield "kernel", "kind", run.os
    yield "lab", "name", run.lab
    yield "lab", "place", run.place
    yield "other", "profile", run.profile
    for name, value in run.facts.to_dict().items():
        if name not in _SEPARATELY:
            area = _AREA.get(name, "other")
            for what, text in flattened(name.replace("_", " "), value):
                yield area, what.removeprefix("tools "), text
    for word in _WORD.findall(run.facts.command_line):
        name, _, value = word.partition("=")
        yield "command line", name, value or "yes"
    for zone, value in run.facts.temperatures_millicelsius.items():
        step = round(value / _HOT_MILLIDEGREES) * _HOT_MILLIDEGREES // 1000
        yield "temperature", zone, f"about {step} degrees Celsius"


_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
"""Of a kernel command line; quotes hold one together."""


def flattened(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """Names and texts of a fact, whatever it holds."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flattened(f"{prefix} {key}", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value, 1):
            yield from flattened(f"{prefix} {number}" if len(value) > 1 else prefix, item)
    else:
        yield prefix, "yes" if value is True else str(value)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in filter(None, map(str.strip, text.splitlines())):
        yield line, ""


def _assignments(text: str, separator: str = "=") -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, mark, value = line.strip().partition(separator)
        if mark and not name.startswith("#"):
            yield name.strip(), value.strip()


_NOT_SET = re.compile(r"# (CONFIG_\w+) is not set")


def _kernel_config(text: str) -> Iterator[tuple[str, str]]:
    """Options by name; an option that is not set is the same as one that is not there."""
    return (pair for pair in _assignments(_NOT_SET.sub("", text)) if pair[0].startswith("CONFIG_"))


_STAMP = re.compile(r"^\[\s*\d+\.\d+\](\[[^\]]*\])?\s*")
_CHANGING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """What the kernel said, without times; numbers stand for any, as many change with each boot."""
    return _lines("\n".join(_CHANGING.sub("#", _STAMP.sub("", line)) for line in text.splitlines()))


def _device_tree(text: str) -> Iterator[tuple[str, str]]:
    """Properties by node, from the blob in hexadecimal digits."""
    import fdt  # noqa: PLC0415  # for this only

    try:
        tree = fdt.parse_dtb(bytes.fromhex(text))
    except Exception as error:  # noqa: BLE001  # the library raises whatever it stumbles over
        yield "blob", f"cannot be read ({error})"
        return
    for path, _, properties in tree.walk():
        for entry in properties:
            # U-Boot puts what changes with each boot there; the rest of /chosen is elsewhere too.
            if path != "/chosen" and not path.startswith("/bootstage"):
                value = entry.to_dts().strip().rstrip(";").partition(" = ")[2]
                yield f"{path} {entry.name}", value


_DOCUMENTS: Mapping[str, tuple[str, Callable[[str], Iterable[tuple[str, str]]]]] = {
    "dmesg": (_MESSAGES, _messages),
    "modules": ("modules", _lines),
    "mounts": ("mounts", _lines),
    "mitigations": ("mitigations", lambda text: _assignments(text, ":")),
    "cpufreq": ("CPU frequency", lambda text: _assignments(text, ":")),
    "uboot_environment": ("U-Boot environment", _assignments),
    "device_tree": ("device tree", _device_tree),
    "kernel_config": ("kernel configuration", _kernel_config),
}
_DOCUMENTED = {area for area, _ in _DOCUMENTS.values()} - {"CPU frequency"}
"""Areas of which nothing is known without the document."""
