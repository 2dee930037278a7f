"""The dashboard of the lab itself: where the time goes, and what does not work."""

from __future__ import annotations

from evmperf.grafana import flux, parts
from evmperf.runs.measurements import RESULT, RUN

_OF_LAB = 'contains(value: if exists r.lab then r.lab else "", set: ${lab:json})'

_CASE = (
    "_time", "board", "benchmark", "case", "status", "refused", "failed", "cause", "run",
)  # fmt: skip


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
                    "From the beginning of a run to its end; none for killed runs.",
                    _of_runs("r.duration_s"),
                    unit="s",
                ),
                parts.over_time(
                    "Share of measuring that tools and boots took",
                    "The rest is evmperf's own time.",
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
                    "Of each run: what its boots and repeated boots cost.",
                    _of_runs("r.power_cycles"),
                ),
                parts.over_time(
                    "Failed boots",
                    "Boots of each run that did not reach their goal.",
                    _of_runs("r.failed_boots"),
                ),
                parts.over_time(
                    "Cases measured after a retry",
                    "A step whose output was refused is done once more.",
                    _of_runs("r.retried"),
                ),
                parts.over_time(
                    "Refused outputs",
                    "Outputs of tools that were not believed.",
                    _of_runs("r.refused_outputs"),
                ),
                parts.rows(
                    "Cases that were not measured, or not at once",
                    "The newest first, 500 at most.",
                    _refused(),
                    _CASE,
                ),
            ],
        )
    )


def _of_runs(value: str) -> str:
    """A figure of every run, a line a board; runs that were killed have no duration."""
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
