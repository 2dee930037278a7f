"""The dashboard of boot times."""

from evmperf.benchmarks.families.boot import SPANS
from evmperf.grafana import flux, parts
from evmperf.runs.measurements import BOOT_MARK, RUN, SAMPLE

_PHASES = [(name, title) for name, _, _, title, _ in SPANS[1:]]

_FAILURE = ("_time", "phase", "failure", "goal", "run")


def dashboard() -> parts.Builder:
    """Phases, single cycles, marks and failures."""
    boot = 'r.driver == "boot"'
    chosen = (flux.OF_BOARD, boot)
    return (
        parts.Builder("evmperf-boot", "Boot time", "Cold boots of one board: phases, cycles, and failures.")
        .choice(*parts.BOARD)
        .kinds()
        .choice("benchmark", flux.tag_values("benchmark", *chosen))
        .choice("case", flux.tag_values("case", *chosen))
        .choice("release", flux.releases(flux.OF_BOARD, flux.MEASURED), multi=True)
        .marks()
        .row(
            "Phases",
            [
                parts.stacked(
                    # One query per phase: Grafana stacks them in this order.
                    parts.over_time(
                        "Mean of each phase",
                        "Stacked from power-on: the phases of a whole boot, by run.",
                        *(_phase(name, title) for name, title in _PHASES),
                        unit="s",
                        width=24,
                        height=10,
                    )
                ),
                parts.distribution(
                    "Boot time of all cycles", "How often each boot time occurred.", _cycles(), unit="s"
                ),
                parts.over_time(
                    "Boot time of every cycle",
                    "From power-on to the prompt, one point per cycle.",
                    _cycles(),
                    unit="s",
                ),
            ],
        )
        .row(
            "Marks and failures",
            [
                parts.over_time(
                    "Marks since power-on", "When each phase appeared on the console.", _marks(), unit="s"
                ),
                parts.over_time("Failed boots of each run", "Beside all boots of the run.", _failed()),
                parts.rows(
                    "Failed boots", "The last phase of each, and why it ended.", _failures(), _FAILURE
                ),
            ],
        )
    )


def _samples(metric: str) -> str:
    return flux.points(
        SAMPLE,
        flux.OF_BOARD,
        'r.benchmark == "${benchmark}"',
        'r.case == "${case}"',
        f"r.metric == {flux.text(metric)}",
        flux.MEASURED,
        flux.OF_KINDS,
        fields=(flux.OF_RELEASES,),
    )


def _phase(name: str, title: str) -> str:
    """Mean of one phase in each run. All phases of a boot have the time of its end."""
    return (
        f"{_samples(name)}\n{flux.PER_RUN}\n"
        f"|> map(fn: (r) => ({{_time: r._time, {flux.text(title)}: r.mean}}))\n"
        '|> sort(columns: ["_time"])'
    )


def _cycles() -> str:
    return (
        f"{_samples(SPANS[0][0])}\n|> group()\n"
        '|> map(fn: (r) => ({_time: r._time, "boot time": r.value}))\n|> sort(columns: ["_time"])'
    )


def _marks() -> str:
    timed = "exists r.since_power_on_s"
    return (
        f"{flux.points(BOOT_MARK, flux.OF_BOARD, flux.OF_KINDS, fields=(flux.OF_RELEASES, timed))}\n"
        "|> map(fn: (r) => ({_time: r._time, series: r.phase, _value: r.since_power_on_s}))\n"
        f"{flux.wide('series')}"
    )


def _failed() -> str:
    return (
        f"{flux.points(RUN, flux.OF_BOARD, flux.MEASURED, flux.OF_KINDS)}\n|> group()\n"
        '|> map(fn: (r) => ({_time: r._time, "failed boots": r.failed_boots, '
        '"boots": r.boots}))\n|> sort(columns: ["_time"])'
    )


def _failures() -> str:
    """One row per failed boot: its last mark."""
    return (
        f"{flux.points(BOOT_MARK, flux.OF_BOARD, flux.OF_KINDS)}\n|> group()\n"
        "|> filter(fn: (r) => r.failed == 1)\n"
        '|> group(columns: ["run", "started_ns"]) |> sort(columns: ["_time"]) |> tail(n: 1)\n'
        "|> group() |> keep(columns: [" + ", ".join(map(flux.text, _FAILURE)) + "])\n"
        '|> sort(columns: ["_time"], desc: true)'
    )
