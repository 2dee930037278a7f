"""What a bus can carry in its mode, and figures that no bus can have carried."""

from pathlib import Path

import pytest
import yaml

from evmperf.measure.state import buses
from evmperf.model.results import Sample
from evmperf.model.state import State
from selftests.support.spools import a_case

KNOWN = yaml.safe_load(Path(__file__).with_name("buses.yaml").read_text())


@pytest.mark.parametrize("figure", KNOWN["best"])
def test_no_figure_is_above_the_best_mode_of_its_bus(figure):
    *row, unit, rate = figure
    can = buses.impossible(*row, unit=unit, mean=rate * 0.99, board="am64xx-hsevm")
    cannot = buses.impossible(*row, unit=unit, mean=rate * 1.02, board="am64xx-hsevm")
    assert (can, bool(cannot)) == ("", True)


def test_what_has_no_known_limit_is_never_impossible():
    assert buses.impossible("lmbench", "bw_mem-rd-1mb", "perf", unit="MB/s", mean=1e9, board="am64xx") == ""
    assert buses.impossible("emmc_ext4", "1m", "read_cpu_load", unit="%", mean=1e9) == ""
    assert buses.impossible("emmc_ext4", "1m", "read_throughput", unit="parsecs", mean=1e9) == ""


def result(shown, metric="read_throughput", value=100.0, unit="MB/s", **more):
    samples = (Sample(metric, value, unit, 0, 1),)
    return a_case(**{"benchmark": "x", "samples": samples, "state": State(shown=shown), **more})


WIRE = {1472: 957.087, 18: 214.286, 64: 492.308, 1518: 924.482, 8192: 958.353}
"""Mbit/s of each size of datagrams."""


@pytest.mark.parametrize("one", KNOWN["limits"])
def test_limits_of_buses_in_their_modes(one):
    limit = one["limit"]
    wanted = {"read_throughput": pytest.approx(100 / limit, abs=1e-4)} if limit else {}
    assert buses.shares(result(one["shown"])) == wanted


@pytest.mark.parametrize(
    ("speed", "mbit", "of"),
    [
        *((1000, mbit, {"params": {"datagram_size": size}}) for size, mbit in WIRE.items()),
        (100, 188.29, {"benchmark": "eth_cpsw_tcp_bidir"}),  # both ways are twice the line
    ],
)
def test_the_wire_carries_so_much(speed, mbit, of):
    one = result({"net.speed": speed, "net.mtu": 1500}, "throughput", mbit, "Mbit/s", **of)
    assert buses.shares(one)["throughput"] == pytest.approx(1, abs=1e-4)


def test_more_than_a_bus_can_carry_is_refused():
    shown = KNOWN["limits"][0]["shown"]  # 52 MB/s
    assert buses.findings(result(shown, value=52.4)) == []
    (finding,) = buses.findings(result(shown, value=53))
    assert (finding.rule, finding.refuses) == ("impossible", True)
    assert buses.findings(result(shown, "read_cpu_load", 99, "%")) == []


@pytest.mark.parametrize("one", KNOWN["modes"])
def test_a_better_mode_that_is_there_is_a_finding(one):
    found = [f for f in buses.findings(result(one["shown"], value=1.0)) if f.rule == "mode"]
    assert [one["word"] in finding.reason for finding in found] == ([True] if one["word"] else [])
