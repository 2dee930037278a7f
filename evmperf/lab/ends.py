"""Further ends of a boot, watched while it goes on: the console, the network, lines that Labgrid reads, and
systemd after the prompt.

A process (`evmperf.lab.answering`) on this machine asks over the network, by the clock that stamps the
console; beside a virtual EVM it runs in the network namespace of its tester. A thread asks for each line.
"""

import inspect
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from evmperf.benchmarks.families.boot import start_of
from evmperf.boards import ends
from evmperf.boards.console.marks import ObservedBoot, Phase
from evmperf.boards.console.record import ConsoleRecord
from evmperf.boards.options import End
from evmperf.lab.answering import Turn
from evmperf.measure.bench import Shell
from evmperf.model.errors import EvmperfError
from evmperf.model.places import for_children
from evmperf.model.records import BootMark

_EVERY_S = 0.05
_ASK_EVERY_S = 0.5
_ASK_S = 20.0
_ASKED = 3
"""Answers that hold the board's clock against ours, at least."""
_TICK_NS = 10_000_000
"""What /proc/uptime resolves."""
_LINE_CHARS = 200
_LINE_BYTES = 4096
"""What is looked at of a line that does not end."""
_ECHOED = 20
"""Characters of what was typed that show its echo, which a narrow terminal breaks."""


@dataclass
class EndWatch:
    """Watches one boot for `ends`; `prefix` are words before the command of the process, `macs` who answered
    in earlier boots, `drivers` Labgrid's drivers of lines by name of their end.
    """

    ends: Mapping[str, End]
    prefix: Sequence[str] = ()
    macs: dict[str, str] = field(default_factory=dict)
    drivers: Mapping[str, Any] = field(default_factory=dict)

    def __enter__(self) -> "EndWatch":
        """Begin; the power may still be on."""
        self._turns: list[Turn] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()
        self._readers = [
            threading.Thread(target=self._read_line, args=pair, daemon=True) for pair in self.drivers.items()
        ]
        for reader in self._readers:
            reader.start()
        if asked := {name: end for name, end in self.ends.items() if ends.kind(end) in ends.NETWORK}:
            words = [sys.executable, "-m", "evmperf.lab.answering", msgspec.json.encode(asked).decode()]
            self._process = subprocess.Popen(
                [*self.prefix, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=for_children(os.environ),
                start_new_session=True,
            )
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and the threads."""
        self._is_over.set()
        for reader in self._readers:  # the next boot's asks the same driver
            reader.join(_ASK_S)
        if self._process:
            assert self._process.stdin
            self._process.stdin.close()  # it ends by that, too, where sudo keeps our signal from it
            self._process.kill()
            self._process.wait()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout
        for line in process.stdout:
            self._turns.append(msgspec.json.decode(line, type=Turn))
        names = [name for name, end in self.ends.items() if ends.kind(end) in ends.NETWORK]
        ended = f"the process that asks ended with status {process.wait()}"
        self._turns += [Turn(name, trouble=ended) for name in names]

    def _read_line(self, name: str, driver: Any) -> None:
        """Ask a driver until the end when its line becomes active, and when it does not stay so."""
        # Labgrid's steps, which its decorators log, belong to the main thread.
        ask, was_active = inspect.unwrap(type(driver).get), False
        since_ns = time.monotonic_ns()
        while not self._is_over.is_set():
            asked_ns = time.monotonic_ns()
            try:
                is_active = bool(ask(driver))
            except Exception as error:  # noqa: BLE001  # a lab's own driver raises anything
                why = str(error)[:_LINE_CHARS]
                self._turns.append(Turn(name, trouble=f"{type(driver).__name__} cannot read it: {why}"))
                return
            if is_active != was_active:
                self._turns.append(Turn(name, is_active, since_ns, time.monotonic_ns()))
            was_active, since_ns = is_active, asked_ns
            self._is_over.wait(self.ends[name].interval_ms / 1e3)

    def await_all(self, boot: ObservedBoot, console: Any, shell: Callable[[], Shell]) -> ObservedBoot:
        """The boot with its ends, once each has come or its time is over; `shell` is asked for units."""
        start, prompt = boot.marks.get(start_of(boot.marks)), boot.marks.get(Phase.PROMPT)
        if start is None or prompt is None:
            return boot
        found: dict[str, BootMark] = {}
        notes: list[str] = []
        missed: dict[str, str] = {}
        while left := {name: end for name, end in self.ends.items() if name not in found and not end.unit}:
            records = console.records()
            for name in left:
                marks = self._marks(name, records, start)
                if marks and not self._is_stranger(marks[0]):
                    found[name] = marks[0]
            past_s = (time.monotonic_ns() - prompt.mono_ns) / 1e9
            if all(past_s > end.within_s or self._trouble(name) for name, end in left.items()):
                break
            time.sleep(_EVERY_S)
        for name, mark in found.items():
            again = self._marks(name, console.records(), start)
            if len(again) > 1:
                seconds = (again[1].mono_ns - mark.mono_ns) / 1e9
                notes.append(
                    f"end {name} came {len(again)} times, again after {seconds:.3f} s: the first counts"
                )
        if units := {name: end for name, end in self.ends.items() if end.unit}:
            missed = _units(units, prompt.mono_ns, shell, found)
        for name, end in self.ends.items():
            if name not in found:
                what = f"{ends.kind(end)} {ends.target(end)}"
                late = f"`{what}` did not come within {end.within_s} s of the prompt"
                missed[name] = f"end {name}: {missed.get(name) or self._why_not(name, start) or late}"
        ordered = {name: found[name] for name in self.ends if name in found}
        return replace(boot, ends=ordered, missed=missed, notes=(*boot.notes, *notes))

    def _marks(self, name: str, records: Sequence[ConsoleRecord], start: BootMark) -> list[BootMark]:
        """Each time that an end came after the kernel's start."""
        end = self.ends[name]
        return [*(_lines(name, end, records, start) if end.line else self._answers(name, start))]

    def _answers(self, name: str, start: BootMark) -> Iterator[BootMark]:
        """When an end that is asked for came after the kernel's start: in the middle of what is possible."""
        for turn in self._turns:
            if turn.name == name and turn.is_up and turn.mono_ns > start.mono_ns:
                since_ns = max(turn.since_ns, start.mono_ns)
                half_ns = (turn.mono_ns - since_ns) // 2
                mono_ns = turn.mono_ns - half_ns
                wall_ns = start.wall_ns + mono_ns - start.mono_ns
                yield BootMark(name, mono_ns, wall_ns, half_ns / 1e9, turn.mac)

    def _is_stranger(self, mark: BootMark) -> bool:
        """Whether another machine answered than before."""
        is_asked = ends.kind(self.ends[mark.phase]) in ends.NETWORK
        return is_asked and mark.text != self.macs.setdefault(mark.phase, mark.text)

    def _trouble(self, name: str) -> str:
        return next((turn.trouble for turn in self._turns if turn.name == name and turn.trouble), "")

    def _why_not(self, name: str, start: BootMark) -> str:
        """Why an end that is asked for does not count, "" where it did not come."""
        if trouble := self._trouble(name):
            return trouble
        known = self.macs.get(name)
        # What came after its deadline is late, whoever it is.
        if strangers := [mark.text for mark in self._answers(name, start) if known and mark.text != known]:
            return f"{strangers[0]} answers, which is not the {known} of the boots before"
        before = [turn for turn in self._turns if turn.name == name and turn.mono_ns < start.mono_ns]
        if before and before[-1].is_up:
            if self.ends[name].gpio:
                return "its line was active before the kernel started"
            who = f", {before[-1].mac}," if before[-1].mac else ""
            return f"it answered before the kernel started: another machine{who} has its address"
        return ""


def _lines(name: str, end: End, records: Sequence[ConsoleRecord], start: BootMark) -> Iterator[BootMark]:
    """Lines of Linux that show an end; not the echo of what was typed."""
    pattern, line, typed = re.compile(end.line.encode()), b"", b""
    for record in records:
        if record.kind == ">":
            typed = record.data.strip() or typed
        if record.kind != "<" or record.mono_ns <= start.mono_ns:
            continue
        *whole, rest = (line + record.data).split(b"\n")
        for text in (one.rstrip(b"\r") for one in whole):
            if (match := pattern.search(text)) and not _is_echo(text, typed):
                shown = match.group().decode("utf-8", "replace")[:_LINE_CHARS]
                half_ns = record.bound_ns // 2
                mono_ns, wall_ns = record.mono_ns - half_ns, record.wall_ns - half_ns
                yield BootMark(name, mono_ns, wall_ns, half_ns / 1e9, shown)
        line = rest[-_LINE_BYTES:]


def _is_echo(text: bytes, typed: bytes) -> bool:
    """Whether a line shows what was typed: a word, such as a login name, at its end only."""
    return bool(typed) and (text.endswith(typed) or (len(typed) >= _ECHOED and typed[:_ECHOED] in text))


def _units(
    units: Mapping[str, End], prompt_ns: int, shell: Callable[[], Shell], found: dict[str, BootMark]
) -> dict[str, str]:
    """Add the times of systemd's units by the kernel's clock, which /proc/uptime relates to ours; returns why
    some have none.
    """
    low_ns, high_ns = -(1 << 62), 1 << 62
    left, asked = dict(units), 0
    try:
        linux = shell()
        while left:
            for name, end in list(left.items()):
                command = f"cat /proc/uptime; systemctl show -p {end.property} --value {end.unit}"
                asked_ns, asked = time.monotonic_ns(), asked + 1
                reply = linux.run(command, _ASK_S)
                answered_ns = time.monotonic_ns()
                uptime, *said = reply.text.splitlines() or [""]
                if reply.status or not said or not said[-1].strip().isdigit():
                    return dict.fromkeys(left, f"`{command}` printed {reply.text.strip()[-200:]!r}")
                uptime_ns = round(float(uptime.split()[0]) * 1e9)
                # Each answer narrows what the clocks may differ by.
                low_ns = max(low_ns, asked_ns - uptime_ns - _TICK_NS)
                high_ns = min(high_ns, answered_ns - uptime_ns)
                if (since_ns := int(said[-1]) * 1000) and asked >= _ASKED:
                    mono_ns = (low_ns + high_ns) // 2 + since_ns
                    wall_ns = time.time_ns() - time.monotonic_ns() + mono_ns
                    found[name] = BootMark(name, mono_ns, wall_ns, (high_ns - low_ns) / 2e9, end.unit)
                    del left[name]
            past_s = (time.monotonic_ns() - prompt_ns) / 1e9
            if all(past_s > end.within_s for end in left.values()):
                break
            time.sleep(_ASK_EVERY_S if asked >= _ASKED else 0)
    except (EvmperfError, ValueError) as error:
        return dict.fromkeys(left, f"systemd could not be asked: {error}")
    return {}
