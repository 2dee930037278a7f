"""Boot time over cold boots, from "Starting kernel" to the prompt; the medium is a condition. Guides name the
first case with and without "20 boot cycles".
"""

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile, noted
from evmperf.benchmarks.families.boot import METRICS, end_metric
from evmperf.model.results import Case

_CASES = (
    Case("default_rootfs", {"kernel_arguments": ""}),
    Case("init_sh", {"kernel_arguments": "init=/bin/sh"}),
)

BENCHMARK = Benchmark(
    name="boot_time_mmcsd",
    driver="boot",
    title="Linux boot time MMCSD",
    section=("Boot-time Measurement", "Boot media: MMCSD"),
    metrics=METRICS,
    profiles={"full": Profile(_CASES, repeats=20), "quick": Profile(_CASES, repeats=3)},
    place=Place.BOOT,
    options=(("boot", "medium"),),
    conditions=noted("boot", "medium"),
    more=end_metric,
)
