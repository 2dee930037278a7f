"""Figures that others beside them show to be wrong: told by what they say, on any board."""

import itertools

import pytest
from evmperf_guides import artefacts

from evmperf.model.figures import Figure, Key
from evmperf.model.results import Result, Status


def figures(benchmark, **rows):
    """Published figures by `case__metric`: a mean, or mean, low and high."""
    found = {}
    for name, value in rows.items():
        case, _, metric = name.strip("_").rpartition("__")
        key = Key(benchmark, case, metric)
        mean, low, high = value if isinstance(value, tuple) else (value, None, None)
        result = Result(benchmark, 0, "x", key.case, {}, "full", Status.MEASURED, ())
        found[key] = Figure(key, "", mean, low, high, None, 0, 0, "", result)
    return found


def doubted(known):
    return {f"{key.case} {key.metric}": why for key, why in artefacts.doubts(known, "x1-evm").items()}


@pytest.mark.parametrize(
    ("rate", "throughput", "hertz"),
    [("24000", 705590, 22050), ("24000", 1023986, 32000), ("11025", 255998, 8000), ("16000", 705593, 22050)],
)
def test_a_codec_at_another_rate_is_told_by_its_bits(rate, throughput, hertz):
    known = figures("audio_capture", **{f"_{rate}__throughput": throughput, f"_{rate}__cpu_load": 3.0})
    found = doubted(known)
    assert set(found) == {f"{rate} throughput", f"{rate} cpu_load"}
    assert f"ran at {hertz}" in found[f"{rate} throughput"].replace("22049", "22050")


def test_a_codec_at_its_rate_is_judged():
    assert not doubted(figures("audio_capture", _24000__throughput=767990, _24000__cpu_load=3.0))


CHAIN = ("rd", "wr", "rdwr", "cp", "fwr", "frd", "fcp", "bzero", "bcopy")


def test_means_of_two_operations_are_told_by_the_bounds_that_they_share():
    own = {operation: 100.0 * (number + 1) for number, operation in enumerate(CHAIN)}
    rows = {}
    for one, after in itertools.pairwise(CHAIN):
        low, high = sorted((own[one], own[after]))
        rows[f"bw_mem-{one}-1mb__perf"] = ((low + high) / 2, low, high)
    rows["bw_mem-bcopy-1mb__perf"] = own["bcopy"]
    found = doubted(figures("lmbench", **rows))
    assert len(found) == len(CHAIN) - 1
    assert "bw_mem-bcopy-1mb perf" not in found


def test_bandwidths_of_a_mended_program_are_judged():
    rows = {f"bw_mem-{one}-1mb__perf": (100.0 * n, 99.0 * n, 101.0 * n) for n, one in enumerate(CHAIN, 1)}
    assert not doubted(figures("lmbench", **rows))


def test_a_clock_that_the_loops_rule_out():
    wrong = figures(
        "dhrystone", cpu_clock__perf=400.0, dhrystone_per_second__perf=6451613.0, dhrystone_per_mhz__perf=9.2
    )
    assert set(doubted(wrong)) == {"cpu_clock perf", "dhrystone_per_mhz perf"}
    right = figures("dhrystone", cpu_clock__perf=1400.0, dhrystone_per_second__perf=6451613.0)
    assert not doubted(right)


def test_a_run_that_moved_nothing():
    row = figures("ipsec_hw", aes192__throughput=0.6, aes192__kpps=0.0, aes192__cpu_load=98.0)
    assert set(doubted(row).values()) == {"a failed run, published"}


@pytest.mark.parametrize(
    ("case", "throughput", "kpps", "payload"),
    [("64", 12.96, 90.0, 18), ("64", 46.08, 90.0, 64), ("64", 30.0, 90.0, 0), ("1518", 706.56, 60.0, 1472)],
)
def test_payloads_are_told_by_packets_and_throughput(case, throughput, kpps, payload):
    known = figures(
        "eth_cpsw_udp_egress_0loss", **{f"_{case}__throughput": throughput, f"_{case}__kpps": kpps}
    )
    key = Key("eth_cpsw_udp_egress_0loss", case, "throughput")
    assert artefacts.payload(known, key) == payload
    assert bool(doubted(known)) is (payload == 0)


@pytest.mark.parametrize(("metric", "value"), [("write_cpu_load", 7378.0), ("write_throughput", -1.0)])
def test_what_no_run_could_have_measured(metric, value):
    assert (
        "not plausible" in doubted(figures("emmc_ext4", **{f"_102400__{metric}": value}))[f"102400 {metric}"]
    )


def test_a_total_that_is_not_the_sum_of_its_rails():
    rails = {"vdd_core__power": 4.0, "vdda_1v8__power": 2.5}
    assert not doubted(figures("lpm_power_deep_sleep", **rails, Total__power=6.5))
    wrong = doubted(figures("lpm_power_deep_sleep", **rails, Total__power=7.5))
    assert wrong == {"Total power": "not the sum of its rails, 6.50"}
