"""perf(1) around a command: folded stacks, as flame graph tools read them, and what they say by symbol."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts

FOLDED, COUNTS, SAID = "perf.folded", "perf.stat", "perf.said"
"""Output files: a stack a line behind its samples and a tab, perf stat's counters, perf's last line if it
recorded nothing.
"""
_HERTZ = 99
"""Samples a second and CPU: none of the kernel's own ticks keeps step with it."""
_LINES = 2000
"""Stacks that are kept, the frequent ones: a few hundred kB."""
_IDLE = re.compile(r"default_idle\w*|cpu_do_idle|arch_cpu_idle|cpuidle_\w+|psci_\w*(?:enter|suspend)\w*")

_SHELL = ShellTexts(__file__)


def around(command: str) -> str:
    """The shell text that runs a command and records meanwhile what all CPUs do. It fails without perf."""
    words = {"hertz": _HERTZ, "lines": _LINES, "folded": FOLDED, "counts": COUNTS, "said": SAID}
    return _SHELL("around", command=shlex.quote(command), **words)


def conditions(outputs: Mapping[str, str]) -> dict[str, str]:
    """What is to be known of a figure with these outputs, if perf ran beside its tool."""
    if FOLDED not in outputs:
        return {}
    if SAID in outputs:
        reason = outputs[SAID].strip()[:200] or "the tool ended before its first sample"
        return {"perf": f"no profile: perf recorded nothing: {reason}"}
    return {"perf": "recorded while the tool ran, which costs time"}


def flames(folded: str) -> str:
    """The stacks as flame graph tools read them: the count last, behind a blank."""
    lines = (line.partition("\t") for line in folded.splitlines())
    return "".join(f"{stack} {count}\n" for count, _, stack in lines)


@dataclass(frozen=True)
class PerfProfile:
    """Samples by the symbol that ran, without perf's own, those of idle CPUs apart; instructions `per_cycle`,
    0 if unknown.
    """

    symbols: Counter[str]
    idle: int
    per_cycle: float = 0.0

    def share(self, symbol: str) -> float:
        """The part of the busy time that a symbol took."""
        return self.symbols[symbol] / max(self.symbols.total(), 1)

    @property
    def uncertainty(self) -> float:
        """By how much a share may be off (95 %): at most 1.96 standard errors of a binomial proportion."""
        return min(1.0, 0.98 / math.sqrt(max(self.symbols.total(), 1)))


def parse(folded: str, counts: str = "") -> PerfProfile:
    """The profile in folded stacks and perf stat's text; raises RefusedOutput for lines of another form."""
    symbols: Counter[str] = Counter()
    idle = 0
    for line in folded.splitlines():
        count, _, stack = line.partition("\t")
        if not stack or not re.fullmatch(r"[0-9]{1,9}", count):
            raise RefusedOutput(f"perf's stacks have a line that is none: {line[:80]!r}", folded)
        command, *frames = stack.split(";")
        leaf = frames[-1] if frames else f"[{command}]"
        if command == "perf":
            continue
        if command == "swapper" and _IDLE.fullmatch(leaf):
            idle += int(count)
        else:
            symbols[leaf] += int(count)
    counters = re.findall(r"^(\d{1,20}),[^,\n]*,(cycles|instructions)\b", counts, re.M)
    number = {name: int(value) for value, name in counters}
    per_cycle = number.get("instructions", 0) / number["cycles"] if number.get("cycles") else 0.0
    return PerfProfile(symbols, idle, per_cycle)
