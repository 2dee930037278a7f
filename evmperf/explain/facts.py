"""What the facts around a case say of its figures, by one table (facts.yaml): against what a value should be,
and against the value in another run.
"""

import functools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import msgspec

from evmperf.measure.state.finding import Finding, cpus, leading
from evmperf.measure.state.rules import NO_LINK
from evmperf.model.state import State, Value


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What all entries have: a pattern of names of values or counters, patterns of the drivers, tables (names
    of benchmarks) and metrics that it can touch, "" for all, and whether it is of the whole machine.
    """

    fact: str
    drivers: str = ""
    tables: str = ""
    metrics: str = ""
    whole: bool = False

    def touches(self, driver: str, table: str) -> bool:
        """Whether it can touch a figure of a table of a driver."""
        return bool(re.fullmatch(self.drivers or ".*", driver) and re.fullmatch(self.tables or ".*", table))


class Setting(Fact, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody set or hardware agreed on; facts.yaml describes the fields."""

    rank: str = ""
    bounds: bool = False
    used: bool = False
    free: bool = False
    needs: str = ""
    unless: str = ""
    set: str = ""
    file: str = ""
    absent: str = ""

    def command(self, name: str, value: Value | None) -> str:
        """The shell text that gives it a value, None for none; "" where it cannot be set so."""
        said = "" if value is None else str(value).strip()
        if chosen := re.search(r"\[([\w-]+)\]", said):
            said = chosen[1]
        named = re.fullmatch(self.fact, name)
        key = (named.groupdict().get("key") or "") if named else ""
        # Both may be another's run: neither is ever more than one word of a command, or a line of a file.
        if not (self.set or self.file) or not re.fullmatch(r"[\w.:/-]*", key):
            return ""
        if value is None:
            return self.absent.replace("{key}", key)
        if self.set in _COMMANDS:
            return _COMMANDS[self.set](said)
        text = f"echo '{{value}}' >{self.file}" if self.file else self.set
        many = r" \t=" if "'{value}'" in text else ""
        unfit = self.unless and re.search(self.unless, said)
        if unfit or not re.fullmatch(rf"[\w.,:/{many}-]{{1,60}}", said):
            return ""
        key = key.replace(".", "/") if self.file else key.lower() if key.isupper() else key
        return text.replace("{key}", key).replace("{value}", " ".join(said.split()))


class Rule(
    Fact, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"is_": "is", "isnt": "is not"}
):
    """A value that it should not have: it is, or is not, of a form, is below or above a number, or rises by
    so many a second.

    Of `log`, the kernel's lines count. `lacking` is a pattern of facts of which there is none, `unlike` the
    last word of the name of a fact that has another value. `say` is a sentence with {name}, {value} and
    {rate}, `back` the command that takes it away, `size` how many times worse it makes a figure at most (0:
    not known). `source` states what the value should be.
    """

    rule: str
    say: str
    source: str
    is_: str = ""
    isnt: str = ""
    below: float | None = None
    above: float | None = None
    rises: float | None = None
    boards: str = ""
    back: str = ""
    size: float = 0.0
    lacking: str = ""
    unlike: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    settings: tuple[Setting, ...]
    rules: tuple[Rule, ...]


TABLE = msgspec.yaml.decode(Path(__file__).with_name("facts.yaml").read_bytes(), type=_Table, strict=False)
_MOUNT_OPTION = (
    r"(?:no|rel)atime|(?:no)?(?:delalloc|barrier|discard|auto_da_alloc)|dioread_(?:no)?lock|"
    r"data=\w{1,9}|commit=\d{1,6}"
)
"""Options that a figure may depend on, and whose opposite the kernel shows by name."""
_QUEUES = ("pfifo", "bfifo", "netem", "tbf", "fq", "fq_codel")
_MOST = 3
"""Facts that a rule names at most."""
_TIMINGS = (0, 3, 2, 4, 1, 5, 7, 8, 9, 6, 10)
"""The kernel's MMC_TIMING_*, the slowest first."""


def proof(command: str) -> str:
    """The A/B that shows what a command costs or gives."""
    quoted = command.replace("'", '"') if '"' not in command else command
    return f"evmperf ab BOARD.yaml -k {{benchmark}} --b 'run:{quoted}'" if command else ""


def value_of(state: State, name: str) -> Value | None:
    """A fact while the case ran. What is there only while it is used, as a file system, the look after the
    case has; the one before it is of the case before.
    """
    before, after = state.shown.get(name), state.after(name)
    entry = _entry(name)
    return after if (entry and entry.used) or before is None or before in NO_LINK else before


def findings(state: State, driver: str, board: str = "", table: str = "") -> Iterator[Finding]:
    """What the facts of a case of a table (the benchmark's name) on a board tell by themselves."""
    for rule in TABLE.rules:
        if rule.touches(driver, table) and re.match(rule.boards, board):
            for name, value, rate in list(_facts(rule, state))[:_MOST]:
                yield Finding(
                    rule.rule,
                    rule.say.format(name=name, value=value, rate=f"{rate:.0f}"),
                    size=rule.size,
                    metrics=rule.metrics,
                    proof=proof(rule.back),
                    whole=rule.whole,
                    fact="" if rule.fact == "log" or rule.rises is not None else name,
                )


def _facts(rule: Rule, state: State) -> Iterator[tuple[str, Value, float]]:
    """Names, values and rises a second of the facts that a rule finds fault with."""
    if rule.rises is not None:
        for name, count in state.counted.items():
            if re.fullmatch(rule.fact, name) and state.seconds and count / state.seconds > rule.rises:
                yield name, count, count / state.seconds
        return
    if rule.fact == "log":
        yield from (("log", line, 0.0) for line in state.log if _is_wrong(rule, line))
        return
    names = dict.fromkeys((*state.shown, *state.changed))
    if rule.lacking and any(re.fullmatch(rule.lacking, name) for name in names):
        return
    for name in names:
        value = value_of(state, name)
        if value is None or not re.fullmatch(rule.fact, name):
            continue
        twin = state.shown.get(f"{name.rpartition('.')[0]}.{rule.unlike}", value)
        if _is_wrong(rule, value) and (not rule.unlike or twin != value):
            yield name, value, 0.0


def _is_wrong(rule: Rule, value: Value) -> bool:
    text, number = str(value), leading(value)
    if (rule.is_ and not re.search(rule.is_, text)) or (rule.isnt and re.search(rule.isnt, text)):
        return False
    if rule.below is not None and not (number is not None and number < rule.below):
        return False
    return rule.above is None or (number is not None and number > rule.above)


def between(
    ours: State,
    theirs: State,
    name: str,
    said: Mapping[str, Finding] = MappingProxyType({}),
    *,
    driver: str = "",
    table: str = "",
) -> Iterator[Finding]:
    """What is set otherwise than in the state of the run `name`, where that may be worse. Of a fact of which
    a rule has `said` something, that is said with what it was there.
    """
    for setting in dict.fromkeys((*ours.shown, *ours.changed, *theirs.shown, *theirs.changed)):
        entry = _entry(setting)
        here, there = value_of(ours, setting), value_of(theirs, setting)
        if entry is None or not entry.touches(driver, table) or here == there or {here, there} & NO_LINK:
            continue
        if (entry.used and None in (here, there)) or (entry.free and here is None):
            continue
        if entry.needs and not any(re.fullmatch(entry.needs, n) for n in (*ours.counted, *theirs.counted)):
            continue
        low, high = (_ranked(entry.rank, value) for value in (here, there))
        if there is None and entry.free:
            low = high
        if low != high and len(low) >= len(high) and all(map(operator.ge, low, high)):
            continue
        pairs = zip(low, high, strict=False) if entry.bounds else ()
        size = max((most / least for least, most in pairs if 0 < least < most), default=0.0)
        now, then = ("absent" if value is None else value for value in (here, there))
        back = command(setting, here), command(setting, there)
        one = said.get(setting) or Finding(
            setting,
            f"set otherwise: {setting} is {now}",
            metrics=entry.metrics,
            whole=entry.whole,
            otherwise=True,
            fact=setting,
        )
        yield replace(
            one,
            reason=f"{one.reason}, in {name} it was {then}",
            size=one.size or size,
            proof=one.proof or (proof(back[1]) if "$" not in back[1] else ""),
            back=("run:" + back[0], "run:" + back[1]) if all(back) else (),
        )


@functools.cache
def _entry(name: str) -> Setting | None:
    """What the table has of a setting; None for what nobody sets, and what is the same in any value."""
    found = next((entry for entry in TABLE.settings if re.fullmatch(entry.fact, name)), None)
    return found if found and found.rank != "same" else None


def _ranked(rank: str, value: Value | None) -> tuple[float, ...]:
    """Where a value stands among those of its setting; () for no order."""
    if value is None or not rank:
        return ()
    return _RANKS[rank](value) if rank in _RANKS else (str(value).startswith(rank),)


def _numbers(value: Value) -> tuple[float, ...]:
    """What it says in numbers; a line of a flash carries twice as much with D as with S."""
    pairs = re.findall(r"(\d{1,15}(?:\.\d{1,9})?)(D?)", str(value))
    return tuple(float(number) * (2 if double else 1) for number, double in pairs)


def _timing(value: Value) -> tuple[float, ...]:
    number = leading(value)
    return (_TIMINGS.index(int(number)),) if number in _TIMINGS else ()


def _limits(value: Value) -> tuple[float, ...]:
    """Limits of I/O, the bytes and operations a second; no limit is the most."""
    found = re.findall(r"=(max|\d{1,15})", str(value))
    return tuple(math.inf if text == "max" else float(text) for text in found)


_RANKS: Mapping[str, Callable[[Value], tuple[float, ...]]] = {
    "numbers": _numbers,
    "fewer": lambda value: tuple(-float(n) for n in re.findall(r"-?\d{1,15}", str(value))),
    "timing": _timing,
    "limits": _limits,
    "cpus": lambda value: (cpus(value),),
}


def command(name: str, value: Value | None) -> str:
    """The shell text that gives a setting a value; "" where there is none."""
    entry = _entry(name)
    return entry.command(name, value) if entry else ""


def _route(said: str) -> str:
    """The command that makes a route of a port as ip shows it."""
    words = r"[\d.]+(?:/\d+)?(?: (?:(?:proto|scope|src|via|metric) )?(?:lock )?[\w.]+){1,20} ?"
    return f"ip route replace {said} dev INTERFACE" if re.fullmatch(words, said) else ""


def _online(said: str) -> str:
    """The command that has these CPUs online, as the kernel lists them."""
    if not re.fullmatch(r"[\d,-]{1,60}", said):
        return ""
    spans = (
        (int(first), int(last or first)) for first, last in re.findall(r"(\d{1,4})(?:-(\d{1,4}))?", said)
    )
    listed = "|".join(str(cpu) for first, last in spans for cpu in range(first, last + 1))
    return (
        "for f in /sys/devices/system/cpu/cpu[0-9]*/online; do n=${f%/online}; "
        f"case ${{n##*cpu}} in {listed}) n=1 ;; *) n=0 ;; esac; echo $n >$f; done"
    )


def _queue(said: str) -> str:
    """The command that makes a port's queue as tc shows it; "" where tc does not take its words back."""
    shown = re.fullmatch(r"qdisc (\w+) (\w+): root(?: refcnt \d+)?(.*)", said)
    if not shown or shown[2] == "0":
        return "tc qdisc del dev INTERFACE root 2>/dev/null; true" if shown else ""
    words = re.sub(r"\b(\d+)p\b", r"\1", shown[3]).strip()
    if shown[1] not in _QUEUES or not re.fullmatch(r"[\w .%]*", words):
        return ""
    return f"tc qdisc replace dev INTERFACE root {shown[1]} {words}".rstrip()


def _mount(said: str) -> str:
    """The command after which a case mounts its file system, and nothing else, with the options that /proc
    shows.
    """
    words = sorted({word for word in re.split("[ ,]", said) if re.fullmatch(_MOUNT_OPTION, word)})
    with_them = f'case "$*" in *" $F/mnt") set -- -o {",".join(words)} "$@" ;; esac; command mount "$@"'
    return f"echo 'mount() {{ {with_them}; }}' >>$F/env" if words else ""


_COMMANDS: Mapping[str, Callable[[str], str]] = {
    "tc": _queue,
    "cpus": _online,
    "route": _route,
    "mount": _mount,
}
"""What makes a command of a value, where that is not one word."""
