"""The dashboards of all boards: fleet, boot times, comparison, lab."""

from evmperf.benchmarks.families.boot import SPANS
from evmperf.grafana import parts, query
from evmperf.model.verdict import Outcome
from evmperf.runs.history import ADDRESSES, BOOT_MARK, RESULT, RUN, SAMPLE, VERDICT

_FAILED_BOOTS = ("Failed boots", "Boots of each run that did not reach their goal.", "failed_boots")
_CASE = ("time", "board", "benchmark", "case")

_JUDGED = ("verdict_worse", "verdict_better", "verdict_cannot_tell", "verdict_same")
_STATUS = ("measured", "partial", "refused", "failed")
_LAST_RUN = (
    *("board", "time", "release", "kind", "outcome", "verdict_worse", "verdict_better", "cases", *_STATUS),
    *("boots", "failed_boots", "lab", "run", *ADDRESSES),
)
_CHANGED = (*_CASE, "metric", "verdict", "change", "reason", "baseline", "release", "kind", "run")
_GOALS = ("reached", *_CASE[1:], "metric", "goal", "owner", "reason", "time", "run")
_NOW = (
    ("Boards with worse figures", "has a figure worse than its baseline", "verdict_worse > 0", "red"),
    ("Boards with cases not measured", "has a partial, refused or failed case", "cases > measured", "orange"),
    ("Boards with failed boots", "has a failed boot", "failed_boots > 0", "orange"),
)
_OVER_TIME = (
    ("Worse figures", "Of each run, against its baseline.", "verdict_worse"),
    ("Better figures", "Of each run, against its baseline.", "verdict_better"),
    _FAILED_BOOTS,
    ("Cases not measured", "Partial, refused or failed, of each run.", "cases - measured"),
)


def fleet() -> parts.Builder:
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
                _counted().last("board").sort("board"),
                _LAST_RUN,
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


def _runs(*conditions: str) -> query.Query:
    return query.points(RUN, query.MEASURED, query.OF_KINDS, *conditions)


def _counted() -> query.Query:
    counts = {name: f"known({name}, 0)" for name in (*_JUDGED, *_STATUS, "cases", "boots", "failed_boots")}
    texts = {"release": "run_release", "lab": "lab_text"}
    addresses = {name: f"known({name}_url, '')" for name in ADDRESSES}
    same = {name: name for name in ("time", "board", "kind", "run", "outcome")}
    return _runs().select(**same, **texts, **counts, **addresses)


def _count(condition: str) -> query.Query:
    return _counted().last("board").count(condition, "boards")


def _per_board(figure: str) -> query.Query:
    return _counted().select(time="time", board="board", Value=figure).wide("board")


def _nights() -> query.Query:
    judged = f"{str(Outcome.NOT_JUDGED)!r}"
    for word in (Outcome.SAME, Outcome.UNKNOWN, Outcome.BETTER, Outcome.WORSE):
        judged = f"{str(word)!r} if verdict_{word.replace(' ', '_')} > 0 else ({judged})"
    return _per_board(judged)


def _places() -> query.Query:
    """One line per place: the board from a run's start, empty from its end."""
    place = {"place": "place_text"}
    begin = {"time": "time", **place, "Value": "board"}
    end = {"time": "moment(ended_ns)", **place, "Value": "''"}
    return _runs("exists(ended_ns)").rows(begin, end).wide("place")


def _changed() -> query.Query:
    words = f"verdict in [{str(Outcome.WORSE)!r}, {str(Outcome.BETTER)!r}]"
    found = query.points(VERDICT, query.MEASURED, query.OF_KINDS, words)
    return found.extend(release="run_release").keep(*_CHANGED).newest(500)


_OF_LAB = "known(lab, '') in several(lab)"
_UNMEASURED = (*_CASE, "status", "refused", "failed", "cause", "run")
_TROUBLE = (
    ("Power cycles", "Power cycles of each run, including repeated boots.", "power_cycles"),
    _FAILED_BOOTS,
    ("Cases measured after a retry", "evmperf repeats a step once after a refused output.", "retried"),
    ("Refused outputs", "Outputs that a parser refused.", "refused_outputs"),
)


def lab() -> parts.Builder:
    """Durations, time in tools, power cycles, retries, refused outputs."""
    unmeasured = query.points(
        RESULT, query.MEASURED, query.OF_KINDS, _OF_LAB, "refused > 0 or failed > 0"
    ).keep(*_UNMEASURED)
    return (
        parts.Builder("evmperf-lab", "Lab", "How the lab works: time, power cycles, refusals.")
        .choice("lab", query.values("lab", query.MEASURED, measurement="run"), multi=True)
        .kinds()
        .row(
            "Time",
            parts.over_time(
                "Duration of runs",
                "From start to end of a run; killed runs have none.",
                _of_lab("duration_s"),
                unit="s",
            ),
            parts.over_time(
                "Share of tools and boots in the measuring time",
                "The rest is evmperf's overhead.",
                _of_lab("0.0 if measured_s == 0.0 else tool_s / measured_s"),
                unit="percentunit",
            ),
        )
        .row(
            "Trouble",
            *(parts.over_time(title, about, _of_lab(figure)) for title, about, figure in _TROUBLE),
            parts.rows(
                "Cases not measured, or only after a retry",
                "The newest first, 500 at most.",
                unmeasured.newest(500),
                _UNMEASURED,
            ),
        )
    )


def _of_lab(value: str) -> query.Query:
    """A figure of every run, one line per board; killed runs have no duration."""
    runs = _runs(_OF_LAB).select(time="time", board="board", Value=value)
    return runs.where("exists(Value)").wide("board")


_FAILURE = ("time", "phase", "failure", "goal", "run")


def boot() -> parts.Builder:
    """Phases, single cycles, marks and failures."""
    chosen = (query.OF_BOARD, "driver == 'boot'")
    failed = {"time": "time", "failed boots": "failed_boots", "boots": "boots"}
    of_board = query.points(RUN, query.OF_BOARD, query.MEASURED, query.OF_KINDS)
    # One query per phase: Grafana stacks them in this order. All phases of a boot have the time of its end.
    phases = (
        _spans(name).per_run().select(**{"time": "time", title: "mean"}).sort("time")
        for name, _, _, title, _ in SPANS[1:]
    )
    cycles = _spans(SPANS[0][0]).select(**{"time": "time", "boot time": "value"}).sort("time")
    return (
        parts.Builder("evmperf-boot", "Boot time", "Cold boots of one board: phases, cycles, and failures.")
        .choice(*parts.BOARD)
        .kinds()
        .choice("benchmark", query.values("benchmark", *chosen))
        .choice("case", query.values("case", *chosen))
        .choice("release", query.releases(query.OF_BOARD, query.MEASURED), multi=True)
        .marks()
        .row(
            "Phases",
            parts.stacked(
                parts.over_time(
                    "Mean of each phase",
                    "Stacked from power-on: the phases of a whole boot, by run.",
                    *phases,
                    unit="s",
                    width=24,
                    height=10,
                )
            ),
            parts.distribution(
                "Boot time of all cycles", "How often each boot time occurred.", cycles, unit="s"
            ),
            parts.over_time(
                "Boot time of every cycle",
                "From power-on to the prompt, one point per cycle.",
                cycles,
                unit="s",
            ),
        )
        .row(
            "Marks and failures",
            parts.over_time(
                "Marks since power-on", "When each phase appeared on the console.", _marks(), unit="s"
            ),
            parts.over_time(
                "Failed boots of each run",
                "Beside all boots of the run.",
                of_board.select(**failed).sort("time"),
            ),
            parts.rows("Failed boots", "The last phase of each, and why it ended.", _failures(), _FAILURE),
        )
    )


def _spans(metric: str) -> query.Query:
    return query.points(
        SAMPLE,
        query.OF_BOARD,
        "benchmark == one(benchmark)",
        "case == one(case)",
        f"metric == {metric!r}",
        query.MEASURED,
        query.OF_KINDS,
        query.OF_RELEASES,
    )


def _marks() -> query.Query:
    timed = "exists(since_power_on_s)"
    marks = query.points(BOOT_MARK, query.OF_BOARD, query.OF_KINDS, query.OF_RELEASES, timed)
    return marks.select(time="time", series="phase", Value="since_power_on_s").wide("series")


def _failures() -> query.Query:
    marks = query.points(BOOT_MARK, query.OF_BOARD, query.OF_KINDS, "failed == 1")
    return marks.last("run", "started_ns").keep(*_FAILURE).newest(500)


_SIDES = ("a", "b")
_KEYS = ("benchmark", "case", "metric", "unit")


def compare() -> parts.Builder:
    """A table of all figures that two boards or releases both have, and bars of one metric."""
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
    bars = _both("benchmark == one(benchmark)", "metric == one(metric)", query.OF_CASES)
    columns = {name: name for name in (*_KEYS, *_SIDES)} | {"B / A": "0.0 if a == 0.0 else b / a"}
    return builder.row(
        "Side by side",
        parts.bars(
            "${benchmark}: ${metric}",
            "The mean of each case that both sides have.",
            bars.select(case="case + ' (' + unit + ')'", A="a", B="b"),
        ),
        parts.rows(
            "All figures of ${driver}",
            "Means; B / A is 1 for equal means. evmperf compare tests whether a difference is significant.",
            _both().select(**columns).sort("benchmark", "case", "metric"),
            [*columns],
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
