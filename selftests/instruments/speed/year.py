"""What a year of nights costs: `evmperf check` against it, and the site of trends of thirty boards."""

import itertools
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.model.exits import ExitStatus
from selftests.instruments.speed.figures import Row, met, ratio, seconds, used
from selftests.support import years

_NIGHTS = 365
_METRICS = 700
"""Of a full run."""
_BOARDS = 30
_BENCHMARKS = ("boot_time_mmcsd", "emmc_ext4", "emmc_raw_fio_1g", "uboot_emmc_raw", "dhrystone", "stream")
_JSON = (
    "import json, pathlib, sys\n"
    "for file in pathlib.Path(sys.argv[1]).glob('*/*.json*'):\n"
    " for line in file.open('rb'): json.loads(line)"
)
"""Reading every run with nothing but json: the least that a reader does."""


@contextmanager
def _year(boards, benchmarks):
    """The nights of so many boards, and how many megabytes they are."""
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        results = Path(folder) / "results"
        size = years.write(results, [f"evm-{number:02}" for number in range(boards)], _NIGHTS, benchmarks)
        yield results, f"{size / 1e6:.0f} MB"


def _figures(benchmarks):
    return sum(len(metrics) for *_, metrics in years.figures(benchmarks))


def _evmperf(*words):
    return [sys.executable, "-m", "evmperf", *map(str, words)]


def check():
    """`evmperf check` of a full run against a year, against json reading the same files."""
    tables = catalogue.benchmarks()
    metrics = itertools.accumulate(_figures([name]) for name in tables)
    full = tuple(name for name, count in zip(tables, metrics, strict=True) if count <= _METRICS)
    with _year(1, full) as (results, size):
        words = ["check", max(results.iterdir()), "--dry-run", "--against", f"last:{_NIGHTS}"]
        command = _evmperf(*words, "--results", results, "--from", results)
        ours = [used(command, (ExitStatus.OK, ExitStatus.FAILED)) for _ in range(3)]
        reference = [used([sys.executable, "-c", _JSON, str(results)]) for _ in range(3)]
    what = f"check against {_NIGHTS} nights ({size}) vs json, CPU"
    peak = max(need.peak_mib for need in ours)
    return [
        ratio(what, [need.cpu_s for need in ours], [need.cpu_s for need in reference], 3),
        Row("  its memory", f"{peak:.0f} MiB", goal="<= 300 MiB", met=met(peak, 300)),
    ]


def site():
    """Writing the site of the year against json reading the same files."""
    with _year(_BOARDS, _BENCHMARKS) as (results, size):
        out = results.with_name("public")
        ours = used(_evmperf("site", "-o", out, "--from", results))
        reference = used([sys.executable, "-c", _JSON, str(results)])
        pages = [page.stat().st_size for page in out.rglob("*.html")]
        whole = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    what = f"site of {_BOARDS} boards x {_NIGHTS} nights x {_figures(_BENCHMARKS)} figures ({size})"
    largest, mib = f"{max(pages) / 1e6:.2f} MB", f"{ours.peak_mib:.0f} MiB"
    return [
        ratio(f"{what} vs json, CPU", [ours.cpu_s], [reference.cpu_s], 5),
        Row("  the time it takes", seconds(ours.wall_s), goal="<= 30 s", met=met(ours.wall_s, 30)),
        Row(f"  its largest page, of {len(pages)}", largest, goal="<= 1 MB", met=met(max(pages), 1e6)),
        Row("  all of it", f"{whole / 1e6:.0f} MB"),
        Row("  memory of its largest process", mib),
    ]
