"""The site's first page, and the index for searching."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from evmperf.benchmarks import wording
from evmperf.model import outlets
from evmperf.model.figures import Key
from evmperf.site.board import BoardSummary, headline, state
from evmperf.site.pages import Folder, is_published, slug

GUIDE = "guide/index.html"
"""Where the performance guide is, if it is part of the site."""
_MOST = 100
"""Changes of the fleet on its page; each board's page has all of its own."""


def write(out: Path, boards: Sequence[BoardSummary]) -> list[int]:
    """Write the fleet's page and what all pages share; returns the bytes of the page. Raises
    OSError when the disk does not take them.
    """
    folder = Folder(out, "")
    changes = sorted(
        (change for board in boards for change in board.changes),
        key=lambda change: change.run.started_ns,
        reverse=True,
    )
    worse = [change for change in changes if change.alarming]
    news = sum((one.news for one in boards), Counter())
    words = sum((one.words for one in boards), Counter())
    period = max((one.period for one in boards), default="")  # "within" is after "since"
    goals = [one for board in boards for one in board.goals]
    folder.page(
        "index.html",
        "fleet.html.j2",
        boards=boards,
        goals=[(one.board, one.goals) for one in boards],
        worse=worse[:_MOST],
        published=bool(boards) and all(is_published(board.run) for board in boards),
        more=len(worse) - _MOST,
        guide=(out / GUIDE).is_file(),
        state=state(news, words, goals),
        headline=headline(sum(one.figures for one in boards), news, words, period, goals),
    )
    folder.file("static/search.js", f"evmperf_search = {_index(boards)};\n")
    script = Path(__file__).with_name("site.js").read_text(encoding="utf-8")
    folder.file("static/site.js", script)
    return folder.sizes


def _index(boards: Sequence[BoardSummary]) -> str:
    """Boards with their cases: a case is named once for all boards that have it."""
    rows: dict[tuple[str, str], int] = {}
    texts = []
    for board in boards:
        for (benchmark, case), metrics in board.cases.items():
            if (benchmark, case) not in rows:
                rows[benchmark, case] = len(rows)
                said = wording.figure(Key(benchmark, case, ""))
                place = f"{slug(benchmark)}/{slug(case)}.html"
                texts.append((benchmark, case, said, " ".join(metrics), place))
    whose = [(b.board, slug(b.board), [rows[key] for key in b.cases]) for b in boards]
    return outlets.script(json.dumps({"cases": texts, "boards": whose}, separators=(",", ":")))
