"""Names of figures as people read them."""

import pytest

from evmperf.benchmarks import catalogue, wording
from evmperf.model.figures import Key


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("emmc_ext4", "1048576", "write_throughput"), "eMMC ext4, 1 MiB, write"),
        (("emmc_raw_fio_1g", "4k", "read_cpu_load"), "eMMC raw fio 1G, 4 KiB, read CPU load"),
        (("uboot_emmc_raw", "2000000", "read_throughput"), "U-Boot eMMC raw, 32 MiB, read"),
        (("dhrystone", "cpu_clock", "perf"), "Dhrystone, cpu_clock"),
        (("openssl_throughput", "a|16", "throughput"), "OpenSSL Performance, a, 16, throughput"),
        (("of another lab", "1m", "x_throughput"), "of another lab, 1m, x"),
        (("emmc_ext4", "7", "throughput"), "eMMC ext4, 7, throughput"),
    ],
)
def test_a_figure_is_named_in_words(key, said):
    assert wording.figure(Key(*key)) == said


def test_no_two_figures_of_the_catalogue_share_a_name():
    names = [
        wording.figure(Key(name, case.label, metric.name))
        for name, benchmark in catalogue.benchmarks().items()
        for case in benchmark.cases("full")
        for metric in benchmark.metrics_of(case)
    ]
    assert len(names) == len(set(names))
