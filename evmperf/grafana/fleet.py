"""The dashboard of all boards."""

from evmperf.grafana import parts, query
from evmperf.model.verdict import Outcome
from evmperf.runs.measurements import ADDRESSES, RUN, VERDICT

_JUDGED = ("verdict_worse", "verdict_better", "verdict_cannot_tell", "verdict_same")
_STATUS = ("measured", "partial", "refused", "failed")
_LAST = ("board", "time", "release", "kind", "outcome", "verdict_worse", "verdict_better", "cases", *_STATUS)
_COLUMNS = (*_LAST, "boots", "failed_boots", "lab", "run", *ADDRESSES)
_CASE = ("time", "board", "benchmark", "case", "metric")
_CHANGED = (*_CASE, "verdict", "change", "reason", "baseline", "release", "kind", "run")
_GOALS = ("reached", *_CASE[1:], "goal", "owner", "reason", "time", "run")
_NOW = (
    ("Boards with worse figures", "has a figure worse than its baseline", "verdict_worse > 0", "red"),
    ("Boards with cases not measured", "has a partial, refused or failed case", "cases > measured", "orange"),
    ("Boards with failed boots", "has a failed boot", "failed_boots > 0", "orange"),
)
_OVER_TIME = (
    ("Worse figures", "Of each run, against its baseline.", "verdict_worse"),
    ("Better figures", "Of each run, against its baseline.", "verdict_better"),
    ("Failed boots", "Boots of each run that did not reach their goal.", "failed_boots"),
    ("Cases not measured", "Partial, refused or failed, of each run.", "cases - measured"),
)


def dashboard() -> parts.Builder:
    """Every board's last run, and how runs went over time."""
    return (
        parts.Builder("evmperf-fleet", "Fleet", "Every board: its last run and its worse figures.", "now-14d")
        .kinds()
        .row(
            "Now",
            parts.single("Boards", "Boards with a run in the selected time.", _count("cases == cases")),
            *(
                parts.single(title, f"Boards whose last run {about}.", _count(condition), trouble=colour)
                for title, about, condition, colour in _NOW
            ),
            parts.rows(
                "Last run of every board",
                "Links to report and CI job, if the run has their addresses.",
                _last_runs(),
                _COLUMNS,
            ),
        )
        .row(
            "Nights and places",
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
                query.goals(query.MEASURED, query.OF_KINDS).keep(*_GOALS).sort("reached", "board", desc=True),
                _GOALS,
            ),
            parts.rows(
                "Figures that changed",
                "Verdicts worse and better, the newest first, 500 at most.",
                _changed(),
                _CHANGED,
            ),
        )
        .row(
            "Over time",
            *(parts.over_time(title, about, _per_board(figure)) for title, about, figure in _OVER_TIME),
        )
    )


def _runs() -> query.Query:
    counts = {name: f"known({name}, 0)" for name in (*_JUDGED, *_STATUS, "cases", "boots", "failed_boots")}
    texts = {"release": "run_release", "lab": "lab_text"}
    addresses = {name: f"known({name}_url, '')" for name in ADDRESSES}
    same = {name: name for name in ("time", "board", "kind", "run", "outcome")}
    return query.points(RUN, query.MEASURED, query.OF_KINDS).select(**same, **texts, **counts, **addresses)


def _last_runs() -> query.Query:
    return _runs().last("board").sort("board")


def _count(condition: str) -> query.Query:
    return _runs().last("board").count(condition, "boards")


def _per_board(figure: str) -> query.Query:
    return _runs().select(time="time", board="board", Value=figure).wide("board")


def _nights() -> query.Query:
    judged = f"{str(Outcome.NOT_JUDGED)!r}"
    for field, word in (
        ("verdict_same", Outcome.SAME),
        ("verdict_cannot_tell", Outcome.UNKNOWN),
        ("verdict_better", Outcome.BETTER),
        ("verdict_worse", Outcome.WORSE),
    ):
        judged = f"{str(word)!r} if {field} > 0 else ({judged})"
    return _per_board(judged)


def _places() -> query.Query:
    """One line per place: the board from a run's start, empty from its end."""
    place = {"place": "place_text"}
    runs = query.points(RUN, query.MEASURED, query.OF_KINDS, "exists(ended_ns)")
    begin = {"time": "time", **place, "Value": "board"}
    end = {"time": "moment(ended_ns)", **place, "Value": "''"}
    return runs.rows(begin, end).wide("place")


def _changed() -> query.Query:
    words = f"verdict in [{str(Outcome.WORSE)!r}, {str(Outcome.BETTER)!r}]"
    found = query.points(VERDICT, query.MEASURED, query.OF_KINDS, words)
    return found.extend(release="run_release").keep(*_CHANGED).newest(500)
