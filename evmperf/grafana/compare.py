"""The dashboard that compares two boards or two releases."""

from evmperf.grafana import parts, query
from evmperf.runs.measurements import SAMPLE

_SIDES = ("a", "b")
_KEYS = ("benchmark", "case", "metric", "unit")
_COLUMNS = (*_KEYS, *_SIDES, "B / A")


def dashboard() -> parts.Builder:
    """A table of all figures that both sides have, and bars of one metric."""
    builder = parts.Builder(
        "evmperf-compare",
        "Compare",
        "Two boards, two releases, or a board and its published figures: the mean of each case.",
        "now-1y",
    )
    for side in _SIDES:
        name = side.upper()
        builder.choice(f"board_{side}", parts.BOARD[1], label=f"{name}: board")
        releases = query.releases(f"board == one(board_{side})")
        builder.choice(f"release_{side}", releases, label=f"{name}: release")
    which: tuple[str, ...] = ("board == one(board_a)",)
    for choice in ("driver", "benchmark", "metric"):
        builder.choice(choice, query.values(choice, *which))
        which = (*which, f"{choice} == one({choice})")
    builder.choice("case", query.values("case", *which), multi=True)
    return builder.row(
        "Side by side",
        parts.bars("${benchmark}: ${metric}", "The mean of each case that both sides have.", _bars()),
        parts.rows(
            "All figures of ${driver}",
            "Means; B / A is 1 for equal means. evmperf compare tests whether a difference is significant.",
            _table(),
            _COLUMNS,
            height=16,
        ),
    )


def _both(*conditions: str) -> query.Query:
    """The mean of each figure that both sides have; includes published figures."""
    a, b = (
        query.points(
            SAMPLE,
            f"board == one(board_{side})",
            "driver == one(driver)",
            f"run_release == one(release_{side})",
            *conditions,
            always=True,
        ).mean(*_KEYS)
        for side in _SIDES
    )
    return query.beside(a, b, *_KEYS)


def _bars() -> query.Query:
    both = _both("benchmark == one(benchmark)", "metric == one(metric)", query.OF_CASES)
    return both.select(case="case + ' (' + unit + ')'", A="a", B="b")


def _table() -> query.Query:
    columns = {name: name for name in (*_KEYS, *_SIDES)} | {"B / A": "0.0 if a == 0.0 else b / a"}
    return _both().select(**columns).sort("benchmark", "case", "metric")
