"""The dashboard of the lab itself: time, power cycles, failures."""

from evmperf.grafana import parts, query
from evmperf.runs.measurements import RESULT, RUN

_OF_LAB = "known(lab, '') in several(lab)"

_CASE = ("time", "board", "benchmark", "case", "status", "refused", "failed", "cause", "run")


_TROUBLE = (
    ("Power cycles", "Power cycles of each run, including repeated boots.", "power_cycles"),
    ("Failed boots", "Boots of each run that did not reach their goal.", "failed_boots"),
    ("Cases measured after a retry", "evmperf repeats a step once after a refused output.", "retried"),
    ("Refused outputs", "Outputs that a parser refused.", "refused_outputs"),
)


def dashboard() -> parts.Builder:
    """Durations, time in tools, power cycles, retries, refused outputs."""
    return (
        parts.Builder("evmperf-lab", "Lab", "How the lab works: time, power cycles, refusals.")
        .choice("lab", query.values("lab", query.MEASURED, measurement="run"), multi=True)
        .kinds()
        .row(
            "Time",
            parts.over_time(
                "Duration of runs",
                "From start to end of a run; killed runs have none.",
                _of_runs("duration_s"),
                unit="s",
            ),
            parts.over_time(
                "Share of tools and boots in the measuring time",
                "The rest is evmperf's overhead.",
                _of_runs("0.0 if measured_s == 0.0 else tool_s / measured_s"),
                unit="percentunit",
            ),
        )
        .row(
            "Trouble",
            *(parts.over_time(title, about, _of_runs(figure)) for title, about, figure in _TROUBLE),
            parts.rows(
                "Cases not measured, or only after a retry",
                "The newest first, 500 at most.",
                _refused(),
                _CASE,
            ),
        )
    )


def _of_runs(value: str) -> query.Query:
    """A figure of every run, one line per board; killed runs have no duration."""
    runs = query.points(RUN, query.MEASURED, query.OF_KINDS, _OF_LAB)
    return runs.select(time="time", board="board", Value=value).where("exists(Value)").wide("board")


def _refused() -> query.Query:
    cases = query.points(RESULT, query.MEASURED, query.OF_KINDS, _OF_LAB, "refused > 0 or failed > 0")
    return cases.keep(*_CASE).newest(500)
