"""What a rule over the state around a case says, and readings of the kernel's values."""

import re
from dataclasses import dataclass

from evmperf.model.state import Value


@dataclass(frozen=True)
class Finding:
    """What a rule says; `refuses` where the figures cannot be vouched for. `size` is how many times
    worse a figure may be by it at most, 0 where that is not known. `metrics` is a pattern of those that it
    concerns, "" for all; `whole` says that it is about the whole machine; `proof` is the command that takes
    it away, with {benchmark} and {run}, "" where there is none. `part` is what of a figure's difference it
    explains, by logarithms, None where it may be all. `otherwise`: it is a difference to another run, of
    which nobody knows what it costs; `back` are the words of a variation with which a board has it as in this
    run, and as in the other one, () where no command sets it. `symptom`: a cause leads to it. `fact` is the
    name of what was read, "" where that was nothing or several.
    """

    rule: str
    reason: str
    refuses: bool = False
    size: float = 0.0
    metrics: str = ""
    whole: bool = False
    proof: str = ""
    part: float | None = None
    otherwise: bool = False
    symptom: bool = False
    back: tuple[str, ...] = ()
    fact: str = ""

    @property
    def subject(self) -> str:
        """What it is about, in a word: the fact, else the rule."""
        return self.fact or self.rule

    def __str__(self) -> str:
        size = f" (up to {self.size:.2f} times)" if self.size else ""
        return f"{self.reason}{size}" + ("" if self.part is None else ": explains a part of it")


def cpus(listed: Value | None) -> int:
    """How many CPUs a list of the kernel's has ("0-3,6"); 0 for none."""
    spans = re.findall(r"(\d{1,4})(?:-(\d{1,4}))?", str(listed if listed is not None else ""))
    return sum(int(last or first) - int(first) + 1 for first, last in spans)


def leading(value: Value | None) -> float | None:
    """The number that a value begins with: 8.0 of "8.0 GT/s PCIe"."""
    number = re.match(r"\d{1,15}(?:\.\d{1,9})?", str(value))
    return float(number[0]) if number else None
