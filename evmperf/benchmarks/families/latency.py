"""Latency histograms that runs have kept: cyclictest's raw files."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Result
from evmperf.tools import cyclictest


def histograms(results: Iterable[Result], folder: Path) -> Iterator[tuple[str, list[dict[int, int]]]]:
    """Benchmark and counts by latency (microseconds), one mapping a CPU, of each run of the tool.

    `folder` is the run's. The rows of a table share one file, which comes once; one that is gone
    or damaged, or that is not below the folder, does not come at all.
    """
    files = {
        name: result.benchmark
        for result in results
        for name in result.raw
        if result.samples and name.endswith(cyclictest.JSON_FILE)
    }
    for name, benchmark in files.items():
        try:
            if not (folder / name).resolve().is_relative_to(folder.resolve()):
                continue
            text = (folder / name).read_text(encoding="utf-8")
            yield benchmark, cyclictest.histograms(text)
        except (OSError, ValueError, RefusedOutput):
            continue
