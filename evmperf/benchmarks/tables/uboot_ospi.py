"""U-Boot writing and reading SPI flash, erased before."""

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families import flash
from evmperf.model.results import Case
from evmperf.model.units import KIBIBYTE, Unit


def _profile(*sizes: str) -> Profile:
    return Profile(tuple(Case(size, {"size_hex": size}) for size in sizes))


def _size(case: Case) -> int:
    return int(str(case.params["size_hex"]), 16)


BENCHMARK = Benchmark(
    name="uboot_ospi",
    driver="ospi",
    title="U-Boot QSPI/OSPI",
    section=("UBoot QSPI/OSPI Driver", "{BOARD}"),
    metrics=flash.metrics(Unit.KIBIBYTE_PER_SECOND, "write", "read"),
    profiles={
        "full": _profile("400000", "800000", "1000000", "2000000"),
        "quick": _profile("40000", "80000"),
    },
    place=Place.UBOOT,
    steps=lambda board, case, profile: flash.uboot_steps(board, _size(case), KIBIBYTE),
    options=flash.UBOOT_OPTIONS,
    conditions=flash.uboot_conditions,
    lacks=lambda board, case: flash.too_large(board, _size(case)),
)
