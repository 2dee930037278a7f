"""Damaged outputs: how often a parser gives another number than the undamaged text's.

Damaged are all recordings that hold a number and, where they are, all real outputs.

The exit status is 1 for a wrong number, except for a lost digit of a number that the tool prints
only once (`ONCE`), and a turned one that moves it by less than half a percent; those are counted.
"""

import math
import sys
from collections import Counter, defaultdict
from pathlib import Path

import yaml

from evmperf.model.errors import RefusedOutput
from selftests.instruments import command
from selftests.support import real_tools
from selftests.support.recordings import KERNEL_LINE, all_recordings, approximately

ONCE = yaml.safe_load(Path(__file__).with_name("once.yaml").read_text())
"""Parsers that read a number of which the tool prints some digits only once, and which."""

_ROUNDED = 0.005
"""Part of a number up to which a turned digit may pass: a tool checks it by another of few digits."""
_KINDS = (
    *("kernel text", "kernel line", "line more", "line doubled", "line lost"),
    *("character lost", "digit turned", "cut"),
)


def subjects():
    """Every whole text that holds a number, with the call that reads it."""
    own = [r for r in all_recordings() if r.expected is not None and not r.edited]
    return own + [case for case in real_tools.cases() if case.expected is not None]


def damages(text, kind, places=0):
    """Place, damaged text, and what was lost; at most so many places, evenly spread (0: all)."""
    if kind.startswith("line"):
        lines = text.splitlines(keepends=True)
        for at in _spread(len(lines), places):
            line = lines[at]
            put = {"line doubled": [line, line], "line more": [line, f"{at}\n"], "line lost": []}[kind]
            yield at, "".join([*lines[:at], *put, *lines[at + 1 :]]), ""
        return
    digits = [at for at, character in enumerate(text) if character in "0123456789"]
    among = digits if kind == "digit turned" else range(len(text))
    for at in (among[number] for number in _spread(len(among), places)):
        if kind == "character lost":
            yield at, text[:at] + text[at + 1 :], text[at]
        elif kind == "digit turned":
            digit = str((int(text[at]) + 1 + at % 9) % 10)
            yield at, text[:at] + digit + text[at + 1 :], text[at]
        elif kind == "cut":
            yield at, text[:at], text[at]
        else:
            line = KERNEL_LINE if kind == "kernel text" else f"\n{KERNEL_LINE}"
            yield at, text[:at] + line + text[at:], ""


def outcomes(recording, kind, places=0):
    """What became of each of the recording's texts, damaged in this way: its own number, refused, wrong, or
    one that the tool prints `once`; and where it was damaged.
    """
    expected = approximately(recording.expected)
    for index, text in enumerate(recording.texts):
        for at, damaged, lost in damages(text, kind, places):
            texts = [*recording.texts[:index], damaged, *recording.texts[index + 1 :]]
            try:
                value = recording.parse(*texts)
            except RefusedOutput:
                value = None
            near = kind == "digit turned" and _near(value, recording.expected)
            if value in (None, "", []):
                what = "refused"
            elif value == expected or _is_part(value, recording.expected):
                what = "own"
            else:
                is_digit = lost in set("0123456789.+-E")
                what = "once" if is_digit and (recording.short in ONCE or near) else "wrong"
            yield what, f"{recording.name}: {kind} at {at} of text {index}: {value}"


def _is_part(value, expected):
    """Whether a list of names with their numbers has no number that it should not have."""
    if not (isinstance(value, list) and value and isinstance(value[0], tuple) and isinstance(expected, list)):
        return False
    return {number for _, number in value} <= {number for _, number in expected}


def _near(value, expected):
    """Whether numbers are within what a tool's rounding hides."""
    pairs = zip(_flat(value), _flat(expected), strict=False)
    return all(math.isclose(a, b, rel_tol=_ROUNDED) for a, b in pairs)


def _flat(value):
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return [number for number in values if type(number) in (int, float)]


def _spread(length, places):
    step = max(length / places, 1.0) if places else 1.0
    return (int(number * step) for number in range(int(length / step)))


def main(words=None):
    """Print the counts; returns the exit status."""
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--places", type=int, default=0, metavar="N", help="of each text (default: all)")
    parser.add_argument("--only", default="", metavar="TOOL", help="one tool, as `nbench`")
    parser.add_argument("--show", type=int, default=5, metavar="N", help="wrong numbers to show")
    options = parser.parse_args(words)
    by_kind = {kind: Counter[str]() for kind in _KINDS}
    by_parser: defaultdict[str, Counter[str]] = defaultdict(Counter)
    wrong: defaultdict[str, list[str]] = defaultdict(list)
    for recording in subjects():
        name = recording.short
        if not name.startswith(options.only):
            continue
        for kind, counted in by_kind.items():
            for what, where in outcomes(recording, kind, options.places):
                counted[what] += 1
                by_parser[name][what] += 1
                if what == "wrong":
                    wrong[name].append(where)
    _print_table("parser", dict(sorted(by_parser.items())))
    print()
    _print_table("damage", by_kind)
    for lines in wrong.values():
        print(*lines[: options.show], sep="\n")
    return 1 if wrong else 0


def _print_table(title, counts):
    print(f"{title:<34} {'calls':>9} {'own':>9} {'refused':>9} {'wrong':>7} {'once':>7}")
    for name, found in {**counts, "all": sum(counts.values(), Counter())}.items():
        print(
            f"{name:<34} {found.total():9} {found['own']:9} {found['refused']:9} "
            f"{found['wrong']:7} {found['once']:7}"
        )


if __name__ == "__main__":
    sys.exit(main())
