"""The dashboard of boot times."""

from __future__ import annotations

from evmperf.boot import SPANS
from evmperf.grafana import flux, parts
from evmperf.influx.lines import BOOT_MARK, RUN, SAMPLE

_PHASES = [(name, title) for name, _, _, title, _ in SPANS[1:]]


def dashboard() -> parts.Builder:
    """Phases, single cycles, marks, and what failed."""
    boot = 'r.driver == "boot"'
    chosen = (flux.OF_BOARD, boot)
    return (
        parts.Builder(
            "evmperf-boot", "Boot time", "Cold boots of one board: phases, cycles, and failures."
        )
        .choice(*parts.BOARD)
        .choice("benchmark", flux.tag_values("benchmark", *chosen))
        .choice("case", flux.tag_values("case", *chosen))
        .choice("release", flux.tag_values("release", *chosen, flux.MEASURED), multi=True)
        .marks()
        .row(
            "Phases",
            [
                parts.stacked(
                    parts.over_time("Mean of each phase", _phases(), unit="s", width=24, height=10)
                ),
                parts.distribution("Boot time of all cycles", _cycles(), unit="s"),
                parts.over_time("Boot time of every cycle", _cycles(), unit="s"),
            ],
        )
        .row(
            "Marks and failures",
            [
                parts.over_time("Marks since power-on", _marks(), unit="s"),
                parts.over_time("Failed boots of each run", _failed()),
                parts.rows("Failed boots", _failures()),
            ],
        )
    )


def _samples(*metrics: str) -> str:
    which = " or ".join(f"r.metric == {flux.text(name)}" for name in metrics)
    return flux.points(
        SAMPLE,
        flux.OF_BOARD,
        'r.benchmark == "${benchmark}"',
        'r.case == "${case}"',
        f"({which})",
        flux.MEASURED,
        flux.OF_RELEASES,
    )


def _phases() -> str:
    """Mean of each phase of each run, in the order of the phases."""
    names = ", ".join(f"{flux.text(name)}: {flux.text(title)}" for name, title in _PHASES)
    # PER_RUN groups by case: here the phase takes its place.
    samples = _samples(*(name for name, _ in _PHASES))
    return (
        f'import "dict"\ntitles = ["": "", {names}]\n'
        f"{samples}\n|> map(fn: (r) => ({{r with case: r.metric}}))\n{flux.PER_RUN}\n"
        "|> map(fn: (r) => ({_time: r._time, "
        "series: dict.get(dict: titles, key: r.case, default: r.case), run: r.run, "
        "_value: r.mean}))\n"
        '|> group(columns: ["run"]) |> sort(columns: ["_time"])\n'
        # All phases of a run at the time of its first, or they would not be stacked.
        "|> map(fn: (r) => ({r with _time: date.truncate(t: r._time, unit: 1m)}))\n"
        f"{flux.wide('series')}"
    ).replace('import "dict"', 'import "date"\nimport "dict"')


def _cycles() -> str:
    return (
        f"{_samples(SPANS[0][0])}\n|> group()\n"
        '|> map(fn: (r) => ({_time: r._time, "boot time": r.value}))\n|> sort(columns: ["_time"])'
    )


def _marks() -> str:
    return (
        f"{flux.points(BOOT_MARK, flux.OF_BOARD, flux.OF_RELEASES)}\n"
        "|> filter(fn: (r) => exists r.since_power_on_s)\n"
        "|> map(fn: (r) => ({_time: r._time, series: r.phase, _value: r.since_power_on_s}))\n"
        f"{flux.wide('series')}"
    )


def _failed() -> str:
    return (
        f"{flux.points(RUN, flux.OF_BOARD, flux.MEASURED)}\n|> group()\n"
        '|> map(fn: (r) => ({_time: r._time, "failed boots": r.failed_boots, '
        '"boots": r.boots}))\n|> sort(columns: ["_time"])'
    )


def _failures() -> str:
    """One row a failed boot: its last mark."""
    return (
        f"{flux.points(BOOT_MARK, flux.OF_BOARD)}\n|> group()\n"
        "|> filter(fn: (r) => r.failed == 1)\n"
        '|> group(columns: ["run", "failure"]) |> sort(columns: ["_time"]) |> tail(n: 1)\n'
        '|> group() |> keep(columns: ["_time", "phase", "goal", "failure", "run"])\n'
        '|> sort(columns: ["_time"], desc: true)'
    )
