"""The dashboard of boot times."""

from evmperf.benchmarks.families.boot import SPANS
from evmperf.grafana import parts, query
from evmperf.runs.measurements import BOOT_MARK, RUN, SAMPLE

_PHASES = [(name, title) for name, _, _, title, _ in SPANS[1:]]

_FAILURE = ("time", "phase", "failure", "goal", "run")


def dashboard() -> parts.Builder:
    """Phases, single cycles, marks and failures."""
    chosen = (query.OF_BOARD, "driver == 'boot'")
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
        )
        .row(
            "Marks and failures",
            parts.over_time(
                "Marks since power-on", "When each phase appeared on the console.", _marks(), unit="s"
            ),
            parts.over_time("Failed boots of each run", "Beside all boots of the run.", _failed()),
            parts.rows("Failed boots", "The last phase of each, and why it ended.", _failures(), _FAILURE),
        )
    )


def _samples(metric: str) -> query.Query:
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


def _phase(name: str, title: str) -> query.Query:
    """Mean of one phase in each run. All phases of a boot have the time of its end."""
    return _samples(name).per_run().select(**{"time": "time", title: "mean"}).sort("time")


def _cycles() -> query.Query:
    return _samples(SPANS[0][0]).select(**{"time": "time", "boot time": "value"}).sort("time")


def _marks() -> query.Query:
    timed = "exists(since_power_on_s)"
    marks = query.points(BOOT_MARK, query.OF_BOARD, query.OF_KINDS, query.OF_RELEASES, timed)
    return marks.select(time="time", series="phase", Value="since_power_on_s").wide("series")


def _failed() -> query.Query:
    shown = {"time": "time", "failed boots": "failed_boots", "boots": "boots"}
    return query.points(RUN, query.OF_BOARD, query.MEASURED, query.OF_KINDS).select(**shown).sort("time")


def _failures() -> query.Query:
    marks = query.points(BOOT_MARK, query.OF_BOARD, query.OF_KINDS, "failed == 1")
    return marks.last("run", "started_ns").keep(*_FAILURE).newest(500)
