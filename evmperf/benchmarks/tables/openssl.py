"""OpenSSL's ciphers and digests: throughput, and CPU load. One run of `openssl speed` for an algorithm
serves both tables. The comparison has each algorithm in three ways: by the kernel, which has the
accelerators, and by the processor with and without its instructions for it.
"""

from typing import Any

from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.step import Measure, Outputs, output
from evmperf.benchmarks.tools import openssl
from evmperf.benchmarks.tools._checks import read_twice
from evmperf.model.results import Case, Reading

_NAMES = {"sha2-256": "sha256", "sha2-512": "sha512"}
"""openssl's names by the guides', where they differ."""

_WAYS = ("arm", "arm_ce", "accelerator")


def _speed(case: Case, way: str = "") -> Measure:
    """Measure one algorithm; one run serves its six rows. A `way` that the board lacks leaves nothing."""
    name, seconds = str(case.params["algorithm"]), int(case.params["seconds"])
    algorithm = _NAMES.get(name, name)
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
        lacking = way == "arm" and read_twice(about) == "none\n"
        mark = "no ARM CE: the processor has not Arm's instructions for AES" if lacking else ""
        if "buffer_size" in case.params:
            rate = openssl.throughput(text, int(case.params["buffer_size"]), seconds)
            return [Reading(way or "throughput", rate / 1000 if way else rate, variant=variant, mark=mark)]
        times, uptime = output(outputs, openssl.TIMES_FILE), output(outputs, openssl.UPTIME_FILE)
        return [Reading(way or "cpu_load", openssl.cpu_load(times, uptime), variant=variant, mark=mark)]

    questions = {"accelerator": [openssl.IN_CRYPTO], "arm": [openssl.EXTENSIONS]}.get(way, [])
    command = openssl.command(algorithm, seconds, before, *questions)
    shared = " ".join(filter(None, ("openssl speed", algorithm, str(seconds), way)))
    return Measure(way or "speed", command, 12 * seconds + 60, 7 * seconds, parse=parse, shared=shared)


def _benchmark(name: str, arguments: dict[str, Any]) -> Benchmark:
    ways = _WAYS if name.startswith("crypto_comparison") else ("",)
    return Benchmark(**arguments, steps=lambda _, case, __: [_speed(case, way) for way in ways])


BENCHMARKS = tuple(_benchmark(*item) for item in declared(__file__).items())
