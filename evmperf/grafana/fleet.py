"""The dashboard of all boards."""

from evmperf.grafana import flux, parts
from evmperf.model.verdict import Outcome
from evmperf.runs.measurements import ADDRESSES, RUN, VERDICT

_COUNTS = (
    "verdict_worse",
    "verdict_better",
    "verdict_cannot_tell",
    "verdict_same",
    "measured",
    "partial",
    "refused",
    "failed",
)

_COLUMNS = (
    "board",
    "_time",
    "release",
    "kind",
    "outcome",
    "verdict_worse",
    "verdict_better",
    "cases",
    "measured",
    "partial",
    "refused",
    "failed",
    "boots",
    "failed_boots",
    "lab",
    "run",
    *ADDRESSES,
)


_CHANGED = (
    "_time",
    "board",
    "benchmark",
    "case",
    "metric",
    "verdict",
    "change",
    "reason",
    "baseline",
    "release",
    "kind",
    "run",
)

_GOALS = ("reached", "board", "benchmark", "case", "metric", "goal", "owner", "reason", "_time", "run")


def dashboard() -> parts.Builder:
    """Every board's last run, and how runs went over time."""
    return (
        parts.Builder("evmperf-fleet", "Fleet", "Every board: its last run and its worse figures.", "now-14d")
        .kinds()
        .row(
            "Now",
            [
                parts.single("Boards", "Boards with a run in the selected time.", _count("true")),
                parts.single(
                    "Boards with worse figures",
                    "Boards whose last run has a figure worse than its baseline.",
                    _count("r.verdict_worse > 0"),
                    trouble="red",
                ),
                parts.single(
                    "Boards with cases not measured",
                    "Boards whose last run has a partial, refused or failed case.",
                    _count("r.measured < r.cases"),
                    trouble="orange",
                ),
                parts.single(
                    "Boards with failed boots",
                    "Boards with a failed boot in their last run.",
                    _count("r.failed_boots > 0"),
                    trouble="orange",
                ),
                parts.rows(
                    "Last run of every board",
                    "Links to report and CI job, if the run has their addresses.",
                    _last_runs(),
                    _COLUMNS,
                ),
            ],
        )
        .row(
            "Nights and places",
            [
                parts.states(
                    "Nights",
                    "The combined verdict on each run of a board: worse if one figure is worse, "
                    "not judged if no figure was compared.",
                    _nights(),
                ),
                parts.states(
                    "Places",
                    "The measured board in each place; a gap is an idle place. Runs without a "
                    "place appear under their lab.",
                    _places(),
                ),
                parts.rows(
                    "Goals",
                    "The last verdict on each figure that has a goal, with its owner.",
                    _goals(),
                    _GOALS,
                ),
                parts.rows(
                    "Figures that changed",
                    "Verdicts worse and better, the newest first, 500 at most.",
                    _changed(),
                    _CHANGED,
                ),
            ],
        )
        .row(
            "Over time",
            [
                parts.over_time(
                    "Worse figures", "Of each run, against its baseline.", _per_board("verdict_worse")
                ),
                parts.over_time(
                    "Better figures", "Of each run, against its baseline.", _per_board("verdict_better")
                ),
                parts.over_time(
                    "Failed boots",
                    "Boots of each run that did not reach their goal.",
                    _per_board("failed_boots"),
                ),
                parts.over_time(
                    "Cases not measured",
                    "Partial, refused or failed, of each run.",
                    _per_board("r.cases - r.measured"),
                ),
            ],
        )
    )


def _runs() -> str:
    shown = ", ".join(
        f"{name}: if exists r.{name} then r.{name} else 0"
        for name in (*_COUNTS, "cases", "boots", "failed_boots")
    )
    shown += "".join(f', {name}: if exists r.{name}_url then r.{name}_url else ""' for name in ADDRESSES)
    return (
        f"{flux.points(RUN, flux.MEASURED, flux.OF_KINDS)}\n|> group()\n"
        "|> map(fn: (r) => ({_time: r._time, board: r.board, kind: r.kind, run: r.run, "
        'release: if exists r.release then r.release else "", '
        f'lab: if exists r.lab then r.lab else "", outcome: r.outcome, {shown}}}))'
    )


def _last() -> str:
    return f'{_runs()}\n|> group(columns: ["board"]) |> sort(columns: ["_time"]) |> tail(n: 1)'


def _last_runs() -> str:
    return f'{_last()}\n|> group() |> sort(columns: ["board"])'


def _count(condition: str) -> str:
    """The number of boards whose last run meets the condition, 0 included."""
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


def _nights() -> str:
    """One column per board: the worst verdict of each run."""
    judged = (
        f"if r.verdict_worse > 0 then {flux.text(Outcome.WORSE)} "
        f"else if r.verdict_better > 0 then {flux.text(Outcome.BETTER)} "
        f"else if r.verdict_cannot_tell > 0 "
        f"then {flux.text(Outcome.UNKNOWN)} "
        f"else if r.verdict_same > 0 then {flux.text(Outcome.SAME)} "
        f"else {flux.text(Outcome.NOT_JUDGED)}"
    )
    return (
        f"{_runs()}\n|> map(fn: (r) => ({{_time: r._time, board: r.board, _value: {judged}}}))\n"
        f"{flux.wide('board')}"
    )


def _places() -> str:
    """One column per place: the board from a run's start, empty from its end."""
    place = 'if exists r.place then r.place else if exists r.lab then r.lab else "unknown"'
    return (
        f"data = {flux.points(RUN, flux.MEASURED, flux.OF_KINDS)}\n|> group()\n"
        "|> filter(fn: (r) => exists r.ended_ns)\n"
        f"|> map(fn: (r) => ({{_time: r._time, ended: r.ended_ns, place: {place}, "
        "board: r.board}))\n"
        "begins = data |> map(fn: (r) => ({_time: r._time, place: r.place, _value: r.board})) "
        '|> set(key: "edge", value: "begin") |> group(columns: ["edge"])\n'
        'ends = data |> map(fn: (r) => ({_time: time(v: r.ended), place: r.place, _value: ""})) '
        '|> set(key: "edge", value: "end") |> group(columns: ["edge"])\n'
        # InfluxDB 2.7 loses a row of two streams with the same group key in one query of eight.
        f'union(tables: [begins, ends]) |> group() |> drop(columns: ["edge"])\n{flux.wide("place")}'
    )


def _goals() -> str:
    names = ", ".join(map(flux.text, _GOALS))
    return (
        f"{flux.last_goals(flux.MEASURED, flux.OF_KINDS)}\n|> keep(columns: [{names}])\n"
        '|> sort(columns: ["reached", "board"], desc: true)'
    )


def _changed() -> str:
    words = f"[{flux.text(Outcome.WORSE)}, {flux.text(Outcome.BETTER)}]"
    names = ", ".join(map(flux.text, _CHANGED))
    return (
        f"{flux.points(VERDICT, flux.MEASURED, flux.OF_KINDS)}\n|> group()\n"
        f"|> filter(fn: (r) => contains(value: r.verdict, set: {words}))\n"
        '|> map(fn: (r) => ({r with release: if exists r.run_release then r.run_release else ""}))\n'
        f"|> keep(columns: [{names}])\n"
        '|> sort(columns: ["_time"], desc: true) |> limit(n: 500)'
    )
