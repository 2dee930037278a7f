"""The dashboard of the lab itself: time, power cycles, failures."""

from evmperf.grafana import flux, parts
from evmperf.runs.measurements import RESULT, RUN

_OF_LAB = 'contains(value: if exists r.lab then r.lab else "", set: ${lab:json})'

_CASE = ("_time", "board", "benchmark", "case", "status", "refused", "failed", "cause", "run")


def dashboard() -> parts.Builder:
    """Durations, time in tools, power cycles, retries, refused outputs."""
    return (
        parts.Builder("evmperf-lab", "Lab", "How the lab works: time, power cycles, refusals.")
        .choice("lab", flux.tag_values("lab", flux.MEASURED, measurement="run"), multi=True)
        .kinds()
        .row(
            "Time",
            [
                parts.over_time(
                    "Duration of runs",
                    "From start to end of a run; killed runs have none.",
                    _of_runs("r.duration_s"),
                    unit="s",
                ),
                parts.over_time(
                    "Share of tools and boots in the measuring time",
                    "The rest is evmperf's overhead.",
                    _of_runs("if r.measured_s == 0.0 then 0.0 else r.tool_s / r.measured_s"),
                    unit="percentunit",
                ),
            ],
        )
        .row(
            "Trouble",
            [
                parts.over_time(
                    "Power cycles",
                    "Power cycles of each run, including repeated boots.",
                    _of_runs("r.power_cycles"),
                ),
                parts.over_time(
                    "Failed boots",
                    "Boots of each run that did not reach their goal.",
                    _of_runs("r.failed_boots"),
                ),
                parts.over_time(
                    "Cases measured after a retry",
                    "evmperf repeats a step once after a refused output.",
                    _of_runs("r.retried"),
                ),
                parts.over_time(
                    "Refused outputs", "Outputs that a parser refused.", _of_runs("r.refused_outputs")
                ),
                parts.rows(
                    "Cases not measured, or only after a retry",
                    "The newest first, 500 at most.",
                    _refused(),
                    _CASE,
                ),
            ],
        )
    )


def _of_runs(value: str) -> str:
    """A figure of every run, one line per board; killed runs have no duration."""
    return (
        f"{flux.points(RUN, flux.MEASURED, flux.OF_KINDS, _OF_LAB)}\n|> group()\n"
        f"|> map(fn: (r) => ({{_time: r._time, board: r.board, _value: {value}}}))\n"
        "|> filter(fn: (r) => exists r._value)\n"
        f"{flux.wide('board')}"
    )


def _refused() -> str:
    return (
        f"{flux.points(RESULT, flux.MEASURED, flux.OF_KINDS, _OF_LAB)}\n|> group()\n"
        "|> filter(fn: (r) => r.refused > 0 or r.failed > 0)\n"
        f"|> keep(columns: [{', '.join(map(flux.text, _CASE))}])\n"
        '|> sort(columns: ["_time"], desc: true) |> limit(n: 500)'
    )
