"""Figures by the words of the guides: `eMMC ext4 fio 1G, 4 MiB, write` for a key of the records."""

import functools
import re
from collections.abc import Mapping

from evmperf.benchmarks import catalogue, control
from evmperf.model.figures import Key
from evmperf.model.results import ParamValue
from evmperf.model.units import size_bytes

_SPELT = {"EMMC": "eMMC", "RAW": "raw", "FIO": "fio", "VFAT": "vfat", "UBOOT": "U-Boot"}
_SPELT |= {f"EXT{number}": f"ext{number}" for number in (2, 3, 4)}
_SIZES = ("buffer_size", "block_size", "size_hex")
"""Parameters whose text is the case's label and means a size: bytes, `4k`, hexadecimal digits."""
_METRIC = (
    *((r"_throughput$", ""), ("_", " ")),
    *((r"\bcpu ?(\d*)", r"CPU \1"), (r"\bper mb\b", "per MB"), (r"\buboot\b", "U-Boot")),
)
_NO_WORD = "perf"
"""The metric of tables whose rows say what is measured."""


def title(benchmark: str) -> str:
    """The guide's title of a benchmark, its id where the catalogue does not know it."""
    entry = catalogue.benchmarks().get(benchmark)
    if benchmark == control.NAME:
        return control.BENCHMARK.title
    return " ".join(_SPELT.get(word, word) for word in entry.title.split()) if entry else benchmark


def case(benchmark: str, label: str) -> str:
    """A case in words: a size with its unit, any other label as it is."""
    return _labels(benchmark).get(label, label)


def label(benchmark: str, given: str) -> str:
    """The label of a case that is named as in tables (`100 KiB`), any other name as it is."""
    plain = given.replace(" ", "").lower()
    return next(
        (one for one, size in _labels(benchmark).items() if size.replace(" ", "").lower() == plain), given
    )


def metric(name: str) -> str:
    """A metric in words: `write`, `write CPU load`, `boot time`."""
    for pattern, text in _METRIC:
        name = re.sub(pattern, text, name)
    return name.strip()


def figure(key: Key) -> str:
    """Benchmark, case and metric in words, with commas."""
    words = (title(key.benchmark), case(key.benchmark, key.case).replace("|", ", "))
    metric_name = "" if key.metric == _NO_WORD else metric(key.metric)
    return ", ".join(word for word in (*words, metric_name) if word)


@functools.cache
def _labels(benchmark: str) -> Mapping[str, str]:
    """The cases of a benchmark whose labels are sizes, in words."""
    entry = catalogue.benchmarks().get(benchmark)
    cases = [one for profile in entry.profiles.values() for one in profile.cases] if entry else []
    return {one.label: size for one in cases if (size := size_text(one.label, one.params))}


def size_text(label: str, params: Mapping[str, ParamValue]) -> str:
    """The size in a case's label, as `4 MiB`; "" if the label has none."""
    name = next((name for name in _SIZES if str(params.get(name, "")) == label), "")
    try:
        size = int(label, 16) if name == "size_hex" else size_bytes(label) if name else 0
    except ValueError:
        return ""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")):
        if size >= 1 << power:
            return f"{size / (1 << power):.4g} {unit}"
    return ""
