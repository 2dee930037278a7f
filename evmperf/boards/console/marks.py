"""Boot marks: when each phase of a boot showed on the console.

A mark is the arrival time of the last byte of the text that announces the phase, found after the
fact in the stamped record. That is what the guides' figures are: the host's clock when "Starting
kernel" and when the prompt had been received (inventory, evidence V: boot_time.rb).
"""

import bisect
import enum
import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from evmperf.boards.console.record import POWER_ANSWERED, POWER_ON, ConsoleRecord
from evmperf.boards.console.signs import patterns
from evmperf.model.errors import EvmperfError
from evmperf.model.records import BootMark

ALLOWED_S, _ALLOWED_PART = 0.02, 0.01
"""How far off the marks of any span may be, in seconds, and as a part of the span. In each of 38 published
boot times the longest of 20 boots is farther from the shortest than that (1 to 98 %, in half of them 6 %).
"""


class Phase(enum.StrEnum):
    """The phases of a boot in their order."""

    POWER_ON = "power_on"
    FIRST_OUTPUT = "first_output"
    BL1 = "bl1"
    SPL_BANNER = "spl_banner"
    TF_A = "tf_a"
    OP_TEE = "op_tee"
    A53_SPL = "a53_spl"
    UBOOT_BANNER = "uboot_banner"
    AUTOBOOT = "autoboot"
    STARTING_KERNEL = "starting_kernel"
    EFI_STUB = "efi_stub"
    FIRST_KERNEL_LINE = "first_kernel_line"
    ROOT_MOUNTED = "root_mounted"
    INIT_STARTED = "init_started"
    PROMPT = "prompt"


@dataclass(frozen=True)
class ObservedBoot:
    """One boot: what was asked for, its marks, and why it failed if it did.

    `goal` is the state that was asked for (uboot, booted, shell), `started_ns` is since the epoch,
    `duration_s` is the time in seconds from before the power-off to the prompt. `measured` says whether the
    errors of its marks were measured, or are only stated. `notes` are what it is good to know of it although
    it went on, as a boot loader that started twice. `warm` says what a boot without
    a power cycle was, "" for a cold one.
    """

    goal: str
    kernel_arguments: str
    started_ns: int
    duration_s: float
    marks: Mapping[Phase, BootMark]
    error: EvmperfError | None = None
    phase: str = ""
    post_mortem: str = ""
    measured: bool = True
    notes: Sequence[str] = ()
    warm: str = ""
    ends: Mapping[str, BootMark] = field(default_factory=dict)
    """Marks of ends that the board file names, each within its `error_s` before or after."""
    missed: Mapping[str, str] = field(default_factory=dict)
    """Why ends that the board file names have no mark, a sentence each."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the boot's parts as its kernel and systemd tell them, where no console does."""
    system: Mapping[str, str] = field(default_factory=dict)
    """What booted (`booted.identity`)."""


_SPL = re.compile(rb"U-Boot SPL \d{4}\.\d\d[^\r\n]*")
_TO_A53 = re.compile(rb"Starting ATF on ARM64 core|NOTICE:  BL31:")
"""Where the R5 hands over to the A53, whose SPL has the same banner."""
_LOADERS = (Phase.BL1, Phase.TF_A, Phase.OP_TEE)
_EITHER_ORDER = frozenset({Phase.ROOT_MOUNTED, Phase.INIT_STARTED})
_TEXT = re.compile(rb"[\x20-\x7e]{4}")
"""What a UART says and noise at power-on does not."""
_LATE_LINE_S = 2.0
"""A kernel that decompresses itself says its first line sooner."""
_ASKED_NS = 2_000_000_000
"""A prompt that comes so soon after something was typed is the answer to that."""


@functools.cache
def _texts() -> dict[Phase, re.Pattern[bytes]]:
    """What announces a phase, in the order of phases."""
    return {Phase(name): re.compile("|".join(text).encode()) for name, text in patterns().marks.items()}


class _Output:
    """What the board said, as one text that knows when each byte of it came."""

    def __init__(self, records: Sequence[ConsoleRecord]) -> None:
        self._records = [record for record in records if record.kind == "<" and record.data]
        self.data = b"".join(record.data for record in self._records)
        self._ends = list(itertools.accumulate(len(record.data) for record in self._records))

    def record(self, position: int) -> ConsoleRecord:
        """The record that brought the byte before `position`."""
        return self._records[bisect.bisect_left(self._ends, position)]

    def length(self, mono_ns: int) -> int:
        """How many bytes had arrived by then."""
        return sum(len(r.data) for r in self._records if r.mono_ns <= mono_ns)

    def mark(self, phase: Phase, match: re.Match[bytes]) -> BootMark:
        text = match.group().decode("utf-8", "replace")
        return _mark(phase, self.record(match.end()), text)


def find(records: Sequence[ConsoleRecord], prompt: str) -> dict[Phase, BootMark]:
    """Marks of one boot in the record since its power-on; phases that did not show are absent.

    Each text is searched behind the mark of the phase before it, so that a second banner (a reset
    in mid-boot) does not move an earlier mark; root and init come in either order. `prompt` is the
    regular expression of what ends the boot: the login prompt, or the shell's when init is a shell.
    A prompt that answers something typed has no mark: when it would have come is not known.
    """
    output = _Output(records)
    marks: dict[Phase, BootMark] = {}
    power = _power_on(records)
    if power:
        marks[Phase.POWER_ON] = power
    if first := _TEXT.search(output.data):
        marks[Phase.FIRST_OUTPUT] = _mark(Phase.FIRST_OUTPUT, output.record(first.start() + 1), "")
    marks |= _loaders(output)
    start = 0
    for phase, pattern in _texts().items():
        if phase not in _LOADERS and (match := pattern.search(output.data, start)):
            marks[phase] = output.mark(phase, match)
            if phase not in _EITHER_ORDER:
                start = match.end()
    linux = {Phase.STARTING_KERNEL, Phase.EFI_STUB, Phase.FIRST_KERNEL_LINE} & set(marks)
    if not linux and Phase.UBOOT_BANNER not in marks:  # a quiet kernel that SPL or SBL started
        linux = {Phase.TF_A} & set(marks)
    # The echo of what is typed follows a prompt on its line, which was whole until then.
    ends = (output.length(r.mono_ns) for r in records if r.kind == ">")
    found_by = (re.compile(prompt.encode()).search(output.data, start, e) for e in (*ends, len(output.data)))
    match = next(filter(None, found_by), None)
    if linux and match:  # a prompt before Linux is U-Boot's
        mark = output.mark(Phase.PROMPT, match)
        began = min(marks[phase].mono_ns for phase in linux)
        earliest, came = max(began, mark.mono_ns - _ASKED_NS), mark.mono_ns
        if not any(r.kind == ">" and earliest < r.mono_ns < came for r in records):
            marks[Phase.PROMPT] = mark
    order = list(Phase)
    return dict(sorted(marks.items(), key=lambda item: order.index(item[0])))


def _loaders(output: _Output) -> dict[Phase, BootMark]:
    """Marks of what runs before U-Boot: R5 and A53 say the same of themselves."""
    uboot = _texts()[Phase.UBOOT_BANNER].search(output.data)
    end = uboot.start() if uboot else len(output.data)
    marks = {
        phase: output.mark(phase, match)
        for phase in _LOADERS
        if (match := _texts()[phase].search(output.data, 0, end))
    }
    handed_over = _TO_A53.search(output.data, 0, end)
    a53 = handed_over.start() if handed_over else end
    if match := _SPL.search(output.data, 0, a53):
        marks[Phase.SPL_BANNER] = output.mark(Phase.SPL_BANNER, match)
    if match := _SPL.search(output.data, a53, end):
        marks[Phase.A53_SPL] = output.mark(Phase.A53_SPL, match)
    return marks


def seconds(marks: dict[Phase, BootMark], begin: Phase, end: Phase) -> float | None:
    """Seconds between two marks, None if either is missing."""
    if begin not in marks or end not in marks:
        return None
    return (marks[end].mono_ns - marks[begin].mono_ns) / 1e9


def allowed_s(span_s: float) -> float:
    """How far off the marks of a span may be, in seconds: one with a mark that is farther off is refused."""
    return max(ALLOWED_S, _ALLOWED_PART * span_s)


def remarks(marks: Mapping[Phase, BootMark]) -> list[str]:
    """What the spans between marks hide, one sentence each."""
    sentences = []
    init, root = marks.get(Phase.INIT_STARTED), marks.get(Phase.ROOT_MOUNTED)
    if init and root and init.mono_ns < root.mono_ns:
        sentences.append(
            "an initial RAM disk was the first program: the time after it includes the work before its root"
        )
    started = marks.get(Phase.STARTING_KERNEL) or marks.get(Phase.EFI_STUB)
    first = marks.get(Phase.FIRST_KERNEL_LINE)
    if started and first and (late_s := (first.mono_ns - started.mono_ns) / 1e9) > _LATE_LINE_S:
        sentences.append(
            f"the kernel's first line came {late_s:.1f} s after its start, with its console driver: "
            f"its messages until then were kept"
        )
    return sentences


def last_phase(marks: Iterable[Phase]) -> Phase | None:
    """The latest phase among those seen: where a boot that failed got to."""
    order = list(Phase)
    return max(marks, key=order.index, default=None)


def _power_on(records: Sequence[ConsoleRecord]) -> BootMark | None:
    order: ConsoleRecord | None = None
    for record in records:
        if record.kind == "#" and record.data == POWER_ON.encode():
            order = record
        elif order and record.kind == "#" and record.data == POWER_ANSWERED.encode():
            return replace(
                _mark(Phase.POWER_ON, order, POWER_ON), error_s=(record.mono_ns - order.mono_ns) / 1e9
            )
    return _mark(Phase.POWER_ON, order, POWER_ON) if order else None


def _mark(phase: Phase, record: ConsoleRecord, text: str) -> BootMark:
    return BootMark(phase, record.mono_ns, record.wall_ns, record.bound_ns / 1e9, text)
