"""OpenSSL's ciphers and digests: throughput, and CPU load. One run of `openssl speed` for an algorithm
serves both tables. The comparison has each algorithm in three ways: by the kernel, which has the
accelerators, and by the processor with and without its instructions for it.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.step import Measure, Outputs, output
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import openssl

_ALGORITHMS = (
    *(f"aes-{bits}-{mode}" for bits in (128, 192, 256) for mode in ("cbc", "ecb")),
    *("des-cbc", "des3", "md5", "sha1", "sha224", "sha256", "sha384", "sha512"),
)
_QUICK_ALGORITHMS = ("aes-128-cbc", "aes-256-ecb", "des3", "sha512")
"""One of each kind: each algorithm takes six times the seconds."""

_BLOCK_SIZES = ("1024", "16", "16384", "256", "64", "8192")
"""Bytes, in the order of the table, which sorts them as text."""


_COMPARED = {name: name for name in _ALGORITHMS[:5]} | {"sha2-256": "sha256", "sha2-512": "sha512"}
"""openssl's names by the guides'."""

_WAYS = {"arm": "ARM", "arm_ce": "ARM CE", "accelerator": "Accelerator"}
"""Titles by metric; only the first is every board's."""


def _speed(case: Case, way: str = "") -> Measure:
    """Measure one algorithm; one run serves its six rows. A `way` that the board lacks leaves nothing."""
    name, seconds = str(case.params["algorithm"]), int(case.params["seconds"])
    algorithm = _COMPARED.get(name, name)
    accelerated = way == "accelerator"
    by_processor = {"": "", "arm_ce": openssl.INSTRUCTIONS, "arm": openssl.NO_INSTRUCTIONS}
    before = openssl.in_kernel(algorithm) if accelerated else by_processor[way]

    def parse(outputs: Outputs) -> list[Reading]:
        if way and openssl.TEXT_FILE not in outputs:
            return []
        text, about = output(outputs, openssl.TEXT_FILE), outputs.get(openssl.ABOUT_FILE, "")
        if accelerated:
            by = openssl.kernel_driver(text, about, algorithm)
        else:
            by = "" if way else openssl.computed_by(about, algorithm)
        variant = f"computed by {by}" if by else ""
        if "buffer_size" in case.params:
            rate = openssl.throughput(text, int(case.params["buffer_size"]), seconds)
            return [Reading(way or "throughput", rate / 1000 if way else rate, variant=variant)]
        times, uptime = output(outputs, openssl.TIMES_FILE), output(outputs, openssl.UPTIME_FILE)
        return [Reading(way or "cpu_load", openssl.cpu_load(times, uptime), variant=variant)]

    command = openssl.command(algorithm, seconds, before, *([openssl.IN_CRYPTO] if accelerated else []))
    shared = " ".join(filter(None, ("openssl speed", algorithm, str(seconds), way)))
    return Measure(way or "speed", command, 12 * seconds + 60, 7 * seconds, parse=parse, shared=shared)


def _throughput(algorithms: Iterable[str], quick: Iterable[str]) -> dict[str, Profile]:
    axes = {"algorithm": algorithms, "buffer_size": _BLOCK_SIZES}
    return Profile.crossed(axes, {"algorithm": quick}, seconds=(3, 1))


_benchmark = partial(Benchmark, driver="crypto", tools=("openssl",))
_one_way = partial(
    _benchmark, section=("CRYPTO Driver", "OpenSSL Performance"), steps=lambda _, case, __: [_speed(case)]
)
_three_ways = partial(
    _benchmark,
    section=("System Benchmarks", "CRYPTO", "Crypto Performance Comparison"),
    steps=lambda _, case, __: [_speed(case, way) for way in _WAYS],
)


BENCHMARKS = (
    _one_way(
        name="openssl_throughput",
        title="OpenSSL Performance",
        metrics=(
            Metric("throughput", Unit.KILOBYTE_PER_SECOND, Direction.HIGHER, "throughput", 10.0, 100_000_000),
        ),
        profiles=_throughput(_ALGORITHMS, _QUICK_ALGORITHMS),
    ),
    _one_way(
        name="openssl_cpu_load",
        title="OpenSSL CPU Load",
        metrics=(percentage("cpu_load", "CPU Load", 0.1),),
        profiles=Profile.both("algorithm", _ALGORITHMS, _QUICK_ALGORITHMS, seconds=(3, 1)),
    ),
    _three_ways(
        name="crypto_comparison",
        title="Crypto Accelerator Performance",
        metrics=tuple(
            Metric(way, Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, title, 0.01, 100_000, way == "arm")
            for way, title in _WAYS.items()
        ),
        profiles=_throughput(_COMPARED, ("aes-128-cbc", "sha2-256")),
    ),
    _three_ways(
        name="crypto_comparison_load",
        title="CPU Usage %",
        metrics=tuple(
            replace(percentage(way, title, 0.1), required=way == "arm") for way, title in _WAYS.items()
        ),
        profiles=Profile.both("algorithm", _COMPARED, ("aes-128-cbc", "sha2-256"), seconds=(3, 1)),
    ),
)
