"""The site of trends: static pages from runs, for people without Grafana.

    index.html                   fleet: every board, and what became worse
    BOARD/index.html             a board: its changes, its benchmarks
    BOARD/BENCHMARK/index.html   a benchmark: every figure with its history in small
    BOARD/BENCHMARK/CASE.html    a case: every sample of every night
    static/                      style, scripts

It needs no server: every page opens from a file system. What a case page draws is within it; the
list of a board's runs, which all its case pages share, is `BOARD/runs.js`.
"""

from evmperf.publish.site.pages import COPIED
from evmperf.publish.site.write import Written, write

__all__ = ["COPIED", "Written", "write"]
