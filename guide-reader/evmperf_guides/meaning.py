"""What a heading or a caption says of the table below it (meaning.yaml): device, file system, tool, ...
A text says nothing of a quantity for which it has two values ("Boot from SATA or NAND").
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from evmperf.boards import yamlfile
from evmperf.judge.published import identity
from evmperf.judge.published.declared import Table
from evmperf.model.errors import UsageError

Meaning = Mapping[str, str]
"""Values by quantity: {"device": "emmc", "system": "ext4"}."""

_WITHIN = {("device", "msata"): "sata", ("device", "usbdev"): "usbhost"}
"""A value of an inner heading and the outer heading's that it refines."""


@functools.lru_cache(maxsize=4096)
def quantities(text: str) -> Meaning:
    """What a text says."""
    words = identity.plain(text)
    values = {q: [v for v, pattern in of.items() if pattern.search(words)] for q, of in _patterns().items()}
    return {quantity: fitting[0] for quantity, fitting in values.items() if len(fitting) == 1}


def along(headings: Sequence[str]) -> tuple[dict[str, tuple[str, str]], str]:
    """What headings say, by quantity: value and heading; and a sentence if two contradict each other."""
    agreed: dict[str, tuple[str, str]] = {}
    for heading in headings:
        for quantity, value in quantities(heading).items():
            before = agreed.get(quantity, (value, heading))
            if before[0] not in (value, _WITHIN.get((quantity, value))):
                return agreed, f"the heading {heading!r} is below {before[1]!r}"
            agreed[quantity] = (value, heading)
    return agreed, ""


def about(table: Table) -> Meaning:
    """What a table is about, by quantity: as its file says it, else as its headings do. Raises UsageError for
    a word of the file that meaning.yaml does not know.
    """
    if not table.about:
        return {quantity: value for quantity, (value, _) in along([*table.section, table.title])[0].items()}
    patterns = _patterns()
    for quantity, value in table.about.items():
        if value not in patterns.get(quantity, {}):
            raise UsageError(f"{table.benchmark}.yaml: about: meaning.yaml has no {quantity}: {value}")
    return table.about


@functools.cache
def _patterns() -> dict[str, dict[str, re.Pattern[str]]]:
    return {
        quantity: {
            value: re.compile(rf"(?<![a-z0-9])(?:{'|'.join(patterns)})(?![a-z0-9])")
            for value, patterns in values.items()
        }
        for quantity, values in yamlfile.read(Path(__file__).with_name("meaning.yaml")).items()
    }
