"""How tests are spread over pytest-xdist's workers: `pytest selftests -n 3`.

A file goes to one worker, as its tests share fixtures. All files that start a virtual EVM go to one
worker: they share running virtual EVMs, and several QEMUs on two cores stamp each other late.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

VIRTUAL_EVM = "virtual_evm"
_FIRST = (VIRTUAL_EVM, "many_sessions")
"""Markers of what takes long; it begins first, so that no worker waits for another at the end."""
_THEN = ("strategies", "grafana", "report", "replay", "doctor", "guide", "lab", "store")
"""Folders with files of half a minute, by the table at the end of a log."""


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests; those of a file stay together."""
    marks: dict[Path, set[str]] = {}
    for item in items:
        marks.setdefault(item.path, set()).update(mark.name for mark in item.iter_markers())
    items.sort(
        key=lambda item: (
            [name not in marks[item.path] for name in _FIRST],
            item.path.parent.name not in _THEN,
        )
    )


class Scheduler(LoadScopeScheduling):
    """Gives a worker a file, or all files with tests on a virtual EVM."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False  # else the many short tests would begin
        super().__init__(config, log)
        self._starts = cache(self._read)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return VIRTUAL_EVM if self._starts(file) else file

    def _read(self, file: str) -> bool:
        """Workers tell names of tests only, so the marker is looked for in the text."""
        return f"mark.{VIRTUAL_EVM}" in (self.config.rootpath / file).read_text(encoding="utf-8")
