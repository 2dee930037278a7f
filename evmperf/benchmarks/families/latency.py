"""Latency histograms that runs have kept: cyclictest's raw files."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Result
from evmperf.tools import cyclictest


def histograms(results: Iterable[Result], folder: Path) -> Iterator[tuple[str, list[dict[int, int]]]]:
    """Benchmark and counts by latency (microseconds) per CPU of each of the tool's files below a run's
    folder, each once; missing or damaged files are left out.
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
