"""Real outputs of benchmark programs, which are not part of the project: they may not be there.

`data/real_tools.tsv` names the files, what is made of their text first, the parser with its arguments, and
the number that a person read from it or what the refusal must say; tools-3 has such a table of its own.
`data/real_tools.yaml` has what neither has room for.
"""

import ast
import csv
import re
from pathlib import Path

import yaml

from evmperf.benchmarks import tables
from selftests.support import seeds
from selftests.support.recordings import DATA, Recording

_KNOWN = yaml.safe_load((DATA / "real_tools.yaml").read_text())
NOT_USED = _KNOWN["not used"]
"""Files without a case, and why."""


def folder():
    """The nearest shared/real/tools beside the checkout or above; None if none."""
    place = seeds.place("real/tools")
    return place if place.is_dir() else None


def _shaped(text, kind="", first="", last=""):
    """A text as a benchmark would have it: one line, or those from one to another, of many programs'
    results; a U-Boot command under `time`; one of several runs of dd, without the commands between.
    """
    match kind:
        case "line":
            return "".join(line for line in text.splitlines(True) if line.startswith(first))
        case "lines":
            at = text.index(f"\n{first}") + 1
            return text[at : text.index("\n", text.index(f"\n{last}", at - 1) + 1) + 1]
        case "timed":
            return f"{text}\ntime: {first} seconds"
        case "piece":
            return re.findall(r"(?:\d+\+\d+ records \w+\n){2}\d+ bytes .*\n", text)[int(first)]
    return text


def _rows(table, place, prefix=""):
    """The cases of a table over files of a folder; none where there is no such table."""
    if not table.is_file():
        return
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for row in rows:
        names = row.get("texts") or f"{prefix}{row['name']}"
        shape = ast.literal_eval(row.get("shape") or "()")
        arguments, parser = ast.literal_eval(row["arguments"]), _full(row["parser"])
        truth = _truth(row.get("name", ""), row["truth"])
        refused = isinstance(truth, str)
        yield Recording(
            name=f"{names} {parser.partition(':')[2]} {' '.join(map(str, arguments))}".strip(),
            parser=parser,
            texts=tuple(_shaped((place / f"{one}.txt").read_text(), *shape) for one in names.split("+")),
            arguments=arguments,
            expected=None if refused else truth,
            refused=truth if refused else "",
            edited=False,
        )


def _full(parser):
    """The whole name of a parser: of a tool of one table, that of tables."""
    if reader := _KNOWN["readers"].get(parser):
        return str(reader)
    tool, _, function = parser.partition(":")
    module = _KNOWN["tables"].get(tool, tool)
    is_table = (Path(tables.__file__).parent / f"{module}.py").is_file()
    return f"evmperf.benchmarks.{'tables' if is_table else 'tools'}.{module}:{function}"


def _truth(name, text):
    """What was read there; as text what the refusal must say."""
    if text == "refuse":
        return "."
    if not text.startswith("[("):
        return ast.literal_eval(text)
    pairs = [(unit, float(seconds)) for unit, seconds in re.findall(r"\('([^']+)', ([\d.]+)\)", text)]
    rest = _KNOWN["cut"].get(name, ())
    return [*pairs, *zip(rest[::2], rest[1::2], strict=True)]


def cases():
    """All cases over the real texts; none where they are not."""
    if not (place := folder()):
        return []
    third = _rows(place / "../tools-3/truth.tsv", place, "../tools-3/")
    return [*_rows(DATA / "real_tools.tsv", place), *third]


def files_of(case):
    """Which real files a case is of."""
    return set(case.name.partition(" ")[0].split("+"))
