"""Feed damaged guides to the importer.

Anything but a result or an error that names a line ends it, with the text that did it.
"""

import random
import re
import time

from hypothesis import strategies as st

from evmperf.guides.reading import importer
from evmperf.model.errors import UsageError
from selftests.instruments import command
from selftests.instruments.speed.guides import texts

ODDITIES = [
    '"',
    '""',
    ",",
    ":",
    "::",
    "|",
    "`",
    "``",
    "*",
    "**",
    "_",
    "\\",
    "\n",
    "\n\n",
    "\t",
    "\0",
    "    ",
    "-----",
    "^^^^^",
    "=====",
    "..",
    ".. csv-table::",
    ".. only:: html",
    ":header:",
    ":ref:`x`",
    "|x|",
    "(min , max )",
    "(min 9, max 1)",
    "1e999",
    "~",
    "\ufeff",
    "\x85",
    "é",
    "+---+",
    "{n}",
    "{BOARD}",
    " [",
    "]",
    "]_",
    "#.",
    "- ",
    "1. ",
    "- - - ",
]


def damaged(text, draw):
    """A guide with a few things done to it; `draw` takes a strategy."""
    for _ in range(draw(st.integers(1, 8))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 60))
        what = draw(st.sampled_from(["cut", "put", "copy", "swap"]))
        piece = text[at : at + length]
        if what == "cut":
            text = text[:at] + text[at + length :]
        elif what == "put":
            text = text[:at] + draw(st.sampled_from(ODDITIES)) + text[at:]
        elif what == "copy":
            text = text[:at] + piece + text[at:]
        else:
            text = text[:at] + piece[::-1] + text[at + length :]
    return text


def read(text):
    """Import a text; raises AssertionError when that ends in any other way than it may."""
    try:
        imported = importer.interpret(text)
    except UsageError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert re.match(r"guide line \d+: ", said), f"no line in {said}"
        return
    lines = text.count("\n") + 2
    for problem in imported.problems:
        assert 1 <= problem.line <= lines, f"line {problem.line} of {lines}: {problem.reason}"


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=300.0, help="(default: %(default)s)")
    seconds = parser.parse_args(words).seconds
    seed = random.SystemRandom().randrange(1 << 32)
    generator = random.Random(seed)
    print(f"seed {seed}")

    def draw(strategy):
        """The few strategies that `damaged` uses, from a fast generator."""
        inner = getattr(strategy, "wrapped_strategy", strategy)
        if hasattr(inner, "elements"):
            return generator.choice(inner.elements)
        return generator.randint(inner.start, inner.end)

    guides = list(texts().values())
    until, count = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        whole = generator.choice(guides)
        begin = generator.randrange(max(1, len(whole) - 6000))
        text = whole[:200] + damaged(whole[begin : begin + 6000], draw)
        try:
            read(text)
        except BaseException:
            print(text)
            raise
        count += 1
    print(f"{count} damaged guides in {seconds:.0f} s: errors with line numbers only")


if __name__ == "__main__":
    main()
