"""OpenSSL's ciphers and digests: throughput, and CPU load. One run of `openssl speed` for an algorithm
serves both tables.
"""

from collections.abc import Callable, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import openssl

_ALGORITHMS = (
    *(f"aes-{bits}-{mode}" for bits in (128, 192, 256) for mode in ("cbc", "ecb")),
    *("des3", "sha1", "sha256", "sha512"),
)
_QUICK_ALGORITHMS = ("aes-128-cbc", "aes-256-ecb", "des3", "sha512")
"""One of each kind: each algorithm takes six times the seconds."""

_BLOCK_SIZES = ("1024", "16", "16384", "256", "64", "8192")
"""Bytes, in the order of the table, which sorts them as text."""


def _benchmark(
    title: str,
    metric: Metric,
    rows: Callable[[str, int], Sequence[Case]],
    read: Callable[[Case, Outputs], float],
) -> Benchmark:
    """A table of openssl speed; `rows` are those of one algorithm, measured for so many seconds."""

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        algorithm, seconds = str(case.params["algorithm"]), int(case.params["seconds"])
        return [
            Measure(
                "speed",
                openssl.command(algorithm, seconds),
                12 * seconds + 60,
                # An algorithm has six rows, and one run for them all.
                seconds,
                parse=lambda outputs: [
                    Reading(metric.name, read(case, outputs), variant=_computed(outputs, algorithm))
                ],
                shared=f"openssl speed {algorithm} {seconds}",
            )
        ]

    def profile(algorithms: Sequence[str], seconds: int) -> Profile:
        return Profile(tuple(case for name in algorithms for case in rows(name, seconds)))

    return Benchmark(
        name=f"openssl_{metric.name}",
        driver="crypto",
        title=title,
        section=("CRYPTO Driver", "OpenSSL Performance"),
        metrics=(metric,),
        profiles={"full": profile(_ALGORITHMS, 3), "quick": profile(_QUICK_ALGORITHMS, 1)},
        steps=steps,
        tools=("openssl",),
    )


def _computed(outputs: Outputs, algorithm: str) -> str:
    by = openssl.computed_by(outputs.get(openssl.ABOUT_FILE, ""), algorithm)
    return f"computed by {by}" if by else ""


def _throughput(case: Case, outputs: Outputs) -> float:
    """kB/s of the case's block size."""
    return openssl.throughput(
        output(outputs, openssl.TEXT_FILE), int(case.params["buffer_size"]), int(case.params["seconds"])
    )


def _cpu_load(_: Case, outputs: Outputs) -> float:
    """Percent of a CPU that openssl had over all block sizes."""
    return openssl.cpu_load(output(outputs, openssl.TIMES_FILE), output(outputs, openssl.UPTIME_FILE))


BENCHMARKS = (
    _benchmark(
        "OpenSSL Performance",
        Metric("throughput", Unit.KILOBYTE_PER_SECOND, Direction.HIGHER, "throughput", 10.0, 100_000_000),
        lambda algorithm, seconds: [
            Case(f"{algorithm}|{size}", {"algorithm": algorithm, "buffer_size": size, "seconds": seconds})
            for size in _BLOCK_SIZES
        ],
        _throughput,
    ),
    _benchmark(
        "OpenSSL CPU Load",
        percentage("cpu_load", "CPU Load", 0.1),
        lambda algorithm, seconds: [Case(algorithm, {"algorithm": algorithm, "seconds": seconds})],
        _cpu_load,
    ),
)
