"""How fast the site of trends is written, and how large it is: a made year of 30 boards."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from selftests.instruments.speed.figures import Row, met, python, ratio, seconds, used
from selftests.support import years

_BOARDS = 30
_NIGHTS = 365
_BENCHMARKS = ("boot_time_mmcsd", "emmc_ext4", "emmc_raw_fio_1g", "uboot_emmc_raw", "dhrystone", "stream")
_SAMPLES = 3
_JSON = (
    "import json, pathlib, sys\n"
    "for file in pathlib.Path(sys.argv[1]).glob('*/*.json*'):\n"
    " for line in file.open('rb'): json.loads(line)"
)
"""Reading every run with nothing but json: the least that a reader does."""


def year() -> list[Row]:
    """Writing the site of the year against json reading the same files."""
    boards = [f"evm-{number:02}" for number in range(_BOARDS)]
    figures = sum(len(metrics) for *_, metrics in years.figures(_BENCHMARKS))
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        results, out = Path(folder) / "results", Path(folder) / "public"
        size = years.write(results, boards, _NIGHTS, _BENCHMARKS, samples=_SAMPLES) / 1e6
        command = [sys.executable, "-m", "evmperf", "site", "-o", str(out), "--from", str(results)]
        ours = used(command)
        reference = used(python(_JSON, str(results)))
        pages = [page.stat().st_size for page in out.rglob("*.html")]
        whole = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    what = f"site of {_BOARDS} boards x {_NIGHTS} nights x {figures} figures ({size:.0f} MB)"
    return [
        ratio(f"{what} vs json, CPU", [ours.cpu_s], [reference.cpu_s], 5),
        Row("  the time it takes", seconds(ours.wall_s), goal="<= 30 s", met=met(ours.wall_s, 30)),
        Row(
            f"  its largest page, of {len(pages)}",
            f"{max(pages) / 1e6:.2f} MB",
            goal="<= 1 MB",
            met=met(max(pages), 1e6),
        ),
        Row("  all of it", f"{whole / 1e6:.0f} MB"),
        Row("  memory of its largest process", f"{ours.peak_mib:.0f} MiB"),
    ]
