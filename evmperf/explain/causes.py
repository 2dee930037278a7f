"""Causes that one fact tells by itself: comparisons with what a setting should be, as data in causes.yaml."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evmperf.measure.state.finding import Finding, leading
from evmperf.model.state import State, Value


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is", "isnt": "is not"}):
    """A cause by a fact, a pattern of names of values or counters: its value is, or is not, of a form, is
    below or above a number, or rises by so many a second.

    Of `log`, the kernel's lines count. `lacking` is a pattern of facts of which there is none, `unlike` the
    last word of the name of a fact that has another value.

    `drivers` and `metrics` are patterns of what it concerns, "" for all, `say` a sentence with {name},
    {value} and {rate}, `proof` the command that takes it away. `source` says who states what it should be.
    """

    rule: str
    fact: str
    say: str
    source: str
    is_: str = ""
    isnt: str = ""
    below: float | None = None
    above: float | None = None
    rises: float | None = None
    drivers: str = ""
    metrics: str = ""
    boards: str = ""
    proof: str = ""
    whole: bool = False
    size: float = 0.0
    lacking: str = ""
    unlike: str = ""


RULES = msgspec.yaml.decode(
    Path(__file__).with_suffix(".yaml").read_bytes(), type=tuple[Rule, ...], strict=False
)
_MOST = 3
"""Facts that a rule names at most."""


def findings(state: State, driver: str, board: str = "") -> Iterator[Finding]:
    """What the facts of a case of a driver on a board tell."""
    for rule in RULES:
        if re.fullmatch(rule.drivers or ".*", driver) and re.match(rule.boards, board):
            for name, value, rate in list(_facts(rule, state))[:_MOST]:
                sentence = rule.say.format(name=name, value=value, rate=f"{rate:.0f}")
                yield Finding(
                    rule.rule,
                    sentence,
                    size=rule.size,
                    metrics=rule.metrics,
                    proof=rule.proof,
                    whole=rule.whole,
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
        value = state.after(name) if state.shown.get(name) is None else state.shown[name]
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
