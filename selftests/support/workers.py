"""How tests are spread over pytest-xdist's workers: `pytest selftests -n 3`.

A file goes to one worker, as its tests share fixtures. Files of `measuring` go to one worker: they share
running virtual EVMs. All other files with virtual EVMs, which are their own, go to another: more than two
QEMUs on two cores would stamp each other late. All for which this machine is a board
(`deskboard.this_machine`) go to one, too: they would wait for each other.
"""

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling

VIRTUAL_EVM = "virtual_evm"
_TOGETHER = {
    "measuring": re.compile(rf"\A\S*/measuring/.*mark\.{VIRTUAL_EVM}", re.DOTALL),
    VIRTUAL_EVM: re.compile(rf"mark\.{VIRTUAL_EVM}"),
    "this machine": re.compile(r"deskboard import .*\b(evmperf|this_machine)\b"),
}
"""Groups of files that go to one worker, and what is in the name and text of each; the first counts."""
_FIRST = (VIRTUAL_EVM, "many_sessions")
"""Markers of what takes long; it begins first, so that no worker waits for another at the end."""
_THEN = ("desk", "strategies", "grafana", "report", "replay", "doctor", "guide", "lab")
"""Folders with files of half a minute, by the table at the end of a log."""


def longest_first(items):
    """Sort tests; those of a file stay together."""
    marks = {}
    for item in items:
        marks.setdefault(item.path, set()).update(mark.name for mark in item.iter_markers())
    items.sort(
        key=lambda item: (
            [name not in marks[item.path] for name in _FIRST],
            item.path.parent.name not in _THEN,
        )
    )


class Scheduler(LoadScopeScheduling):
    """Gives a worker a file, or all files of a group."""

    def __init__(self, config, log):
        config.option.loadscopereorder = False  # else the many short tests would begin
        super().__init__(config, log)
        self._group_of = cache(self._read)

    def _split_scope(self, nodeid):
        return self._group_of(nodeid.partition("::")[0])

    def _read(self, file):
        """The file's group, or itself. Workers tell names of tests only, so its text is looked at."""
        text = f"{file}\n{(self.config.rootpath / file).read_text(encoding='utf-8')}"
        return next((name for name, sign in _TOGETHER.items() if sign.search(text)), file)
