"""Series of machines that measured, for judging verdicts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def machine(file: Path) -> Iterator[tuple[str, Matrix]]:
    """The series of each setup that cover all of its runs, a row each, a column a run. What a
    series lacks is as the run before; lower is better.
    """
    with gzip.open(file, "rt") as lines:
        entries = [json.loads(line) for line in lines]
    for setup in sorted({entry["setup"] for entry in entries}):
        mine = [entry for entry in entries if entry["setup"] == setup]
        ((length, _),) = Counter(len(entry["hours"]) for entry in mine).most_common(1)
        longest = max(mine, key=lambda entry: len(entry["hours"]))
        grid = np.array(longest["hours"])
        rows = []
        for entry in mine:
            if not 0.95 * length <= len(entry["hours"]) or abs(entry["hours"][-1] - grid[-1]) > 6:
                continue
            row = np.full(len(grid), np.nan)
            hours = np.array(entry["hours"])
            row[np.abs(grid[None] - hours[:, None]).argmin(axis=1)] = entry["value"]
            known = np.flatnonzero(np.isfinite(row))
            rows.append(row[known[np.searchsorted(known, np.arange(len(grid)), "right") - 1]])
        yield setup, np.array(rows)
