"""OpenSSL's ciphers and digests: throughput, and CPU load. One run of `openssl speed` for an algorithm
serves both tables.
"""

from collections.abc import Sequence

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


def _steps(_: Board, case: Case, __: Plan) -> Sequence[Step]:
    algorithm, seconds = str(case.params["algorithm"]), int(case.params["seconds"])

    def parse(outputs: Outputs) -> list[Reading]:
        by = openssl.computed_by(outputs.get(openssl.ABOUT_FILE, ""), algorithm)
        variant = f"computed by {by}" if by else ""
        if "buffer_size" in case.params:
            text, size = output(outputs, openssl.TEXT_FILE), int(case.params["buffer_size"])
            return [Reading("throughput", openssl.throughput(text, size, seconds), variant=variant)]
        times, uptime = output(outputs, openssl.TIMES_FILE), output(outputs, openssl.UPTIME_FILE)
        return [Reading("cpu_load", openssl.cpu_load(times, uptime), variant=variant)]

    # An algorithm has six rows, and one run for them all.
    command, shared = openssl.command(algorithm, seconds), f"openssl speed {algorithm} {seconds}"
    return [Measure("speed", command, 12 * seconds + 60, seconds, parse=parse, shared=shared)]


def _throughput(algorithms: Sequence[str], seconds: int) -> Profile:
    return Profile(
        tuple(
            Case(f"{name}|{size}", {"algorithm": name, "buffer_size": size, "seconds": seconds})
            for name in algorithms
            for size in _BLOCK_SIZES
        )
    )


def _benchmark(title: str, metric: Metric, full: Profile, quick: Profile) -> Benchmark:
    return Benchmark(
        name=f"openssl_{metric.name}",
        driver="crypto",
        title=title,
        section=("CRYPTO Driver", "OpenSSL Performance"),
        metrics=(metric,),
        profiles={"full": full, "quick": quick},
        steps=_steps,
        tools=("openssl",),
    )


BENCHMARKS = (
    _benchmark(
        "OpenSSL Performance",
        Metric("throughput", Unit.KILOBYTE_PER_SECOND, Direction.HIGHER, "throughput", 10.0, 100_000_000),
        _throughput(_ALGORITHMS, 3),
        _throughput(_QUICK_ALGORITHMS, 1),
    ),
    _benchmark(
        "OpenSSL CPU Load",
        percentage("cpu_load", "CPU Load", 0.1),
        Profile.of("algorithm", _ALGORITHMS, seconds=3),
        Profile.of("algorithm", _QUICK_ALGORITHMS, seconds=1),
    ),
)
