"""The dashboard of all boards."""

from __future__ import annotations

from evmperf.grafana import flux, parts
from evmperf.runs.measurements import RUN

_COUNTS = ("verdict_worse", "verdict_better", "measured", "partial", "refused", "failed")

_COLUMNS = (
    "board", "_time", "release", "kind", "outcome", "verdict_worse", "verdict_better", "cases",
    "measured", "partial", "refused", "failed", "boots", "failed_boots", "lab", "run",
)  # fmt: skip


def dashboard() -> parts.Builder:
    """Every board's last run, and how runs went over time."""
    return (
        parts.Builder(
            "evmperf-fleet", "Fleet", "Every board: its last run, and what became worse.", "now-14d"
        )
        .row(
            "Now",
            [
                parts.single("Boards", _count("true")),
                parts.single("Boards with worse figures", _count("r.verdict_worse > 0")),
                parts.single("Boards with cases not measured", _count("r.measured < r.cases")),
                parts.single("Boards with failed boots", _count("r.failed_boots > 0")),
                parts.rows("Last run of every board", _last_runs(), _COLUMNS),
            ],
        )
        .row(
            "Over time",
            [
                parts.over_time("Worse figures", _per_board("verdict_worse")),
                parts.over_time("Better figures", _per_board("verdict_better")),
                parts.over_time("Failed boots", _per_board("failed_boots")),
                parts.over_time("Cases not measured", _per_board("r.cases - r.measured")),
            ],
        )
    )


def _runs() -> str:
    shown = ", ".join(
        f"{name}: if exists r.{name} then r.{name} else 0"
        for name in (*_COUNTS, "cases", "boots", "failed_boots")
    )
    return (
        f"{flux.points(RUN, flux.MEASURED)}\n|> group()\n"
        "|> map(fn: (r) => ({_time: r._time, board: r.board, kind: r.kind, run: r.run, "
        'release: if exists r.release then r.release else "", '
        f'lab: if exists r.lab then r.lab else "", outcome: r.outcome, {shown}}}))'
    )


def _last() -> str:
    return f'{_runs()}\n|> group(columns: ["board"]) |> sort(columns: ["_time"]) |> tail(n: 1)'


def _last_runs() -> str:
    return f'{_last()}\n|> group() |> sort(columns: ["board"])'


def _count(condition: str) -> str:
    """The number of boards whose last run is like that; 0 is a number as well."""
    return (
        f"{_last()}\n|> group()\n"
        f"|> reduce(identity: {{boards: 0}}, fn: (r, accumulator) => "
        f"({{boards: accumulator.boards + (if {condition} then 1 else 0)}}))"
    )


def _per_board(figure: str) -> str:
    value = figure if "." in figure else f"r.{figure}"
    return (
        f"{_runs()}\n|> map(fn: (r) => ({{_time: r._time, board: r.board, _value: {value}}}))\n"
        f"{flux.wide('board')}"
    )
