"""What a bus can carry in its mode, and figures that no bus can have carried."""

import pytest

from evmperf.measure.state import buses
from evmperf.model.results import Sample
from evmperf.model.state import State
from selftests.support.spools import a_case


@pytest.mark.parametrize(
    ("figure", "rate"),
    [
        (("uboot_emmc_raw", "1000000", "read_throughput", "KiB/s"), 400e6 / 1024),
        (("uboot_ospi", "2000000", "read_throughput", "KiB/s"), 1e9 / 3 / 1024),
        (("usbdev_hs_cdc_tcp", "8", "rx_throughput", "Mbit/s"), 425.984),
        (("mmcsd_raw_fio_1g", "4k", "read_throughput", "MB/s"), 104),
        (("eth_cpsw_udp_egress_0loss", "1518", "throughput", "Mbit/s"), 957.09 * 1.06),
        (("audio_capture", "24000", "throughput", "bit/s"), 768000 * 1.02),
        (("lmbench", "bw_mem-rd-16mb", "perf", "MB/s"), 3200),
        (("stream", "copy", "perf", "MB/s"), 3200),
        (("linpack", "linpack", "perf", "kflops"), 8e6),
    ],
)
def test_no_figure_is_above_the_best_mode_of_its_bus(figure, rate):
    *row, unit = figure
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


def mmc(timing, hertz, lines, **more):
    return {
        "mmc.ios.clock": f"{hertz} Hz",
        "mmc.ios.timing_spec": timing,
        "mmc.ios.bus_width": f"3 ({lines} bits)",
        **more,
    }


WIRE = {1472: 957.087, 18: 214.286, 64: 492.308, 1518: 924.482, 8192: 958.353}
"""Mbit/s of each size of datagrams."""
LINK = "pci.0000:01:00.0.current_link"
USB = {"usb.usb1.speed": 10000, "usb.1-1.speed": 480, "usb.1-1.version": "2.00"}


@pytest.mark.parametrize(
    ("shown", "limit"),
    [
        (mmc("1 (mmc high-speed)", 52000000, 8), 52),
        (mmc("8 (mmc DDR52)", 52000000, 8), 104),
        (mmc("9 (mmc HS200)", 200000000, 8), 200),
        (mmc("10 (mmc HS400 enhanced strobe)", 200000000, 8), 400),
        (mmc("6 (sd uhs SDR104)", 208000000, 4), 104),
        (mmc("7 (sd uhs DDR50)", 50000000, 4), 50),
        (mmc("2 (sd high-speed)", 50000000, 4), 25),
        (mmc("9 (mmc HS200)", 200000000, 8, **{"mmc.ios.actual_clock": "100000000 Hz"}), 100),
        ({"spi_nor.spi0.0.read": "8D-8D-8D", "spi_nor.spi0.0.max_hz": 25000000}, 50),
        ({"spi_nor.spi0.0.read": "1S-1S-8S", "spi_nor.spi0.0.max_hz": 166666666}, 166.666666),
        ({"ufs.gear": "HS_GEAR3", "ufs.lane": 2, "ufs.rate": "HS_RATE_B"}, 1166.08),
        (USB, 53.248),
        ({**USB, "usb.1-1.speed": 5000}, 500),
        (
            {
                "pci.0000:01:00.0.current_link_speed": "8.0 GT/s PCIe",
                "pci.0000:01:00.0.current_link_width": 2,
            },
            1969.23,
        ),
        (
            {
                "pci.0000:01:00.0.current_link_speed": "2.5 GT/s PCIe",
                "pci.0000:01:00.0.current_link_width": 1,
            },
            250,
        ),
        ({**USB, "net.speed": 100, "net.mtu": 1500}, 53.248),
        *(
            (unknown, None)
            for unknown in (
                {},
                mmc("x", 0, 8),
                mmc("9 (mmc HS200)", 200000000, 0),
                {"net.speed": 1000, "net.mtu": 20},
                {"net.speed": "fast"},
                {**USB, "usb.1-1.speed": 7},
                {"ufs.gear": "HS_GEAR3", "ufs.lane": "x"},
                {"spi_nor.a.read": "9D-9D-9D", "spi_nor.a.max_hz": 5},
            )
        ),
    ],
)
def test_limits_of_buses_in_their_modes(shown, limit):
    wanted = {"read_throughput": pytest.approx(100 / limit, abs=1e-4)} if limit else {}
    assert buses.shares(result(shown)) == wanted


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
    shown = mmc("1 (mmc high-speed)", 52000000, 8)
    assert buses.findings(result(shown, value=52.4)) == []
    (finding,) = buses.findings(result(shown, value=53))
    assert (finding.rule, finding.refuses) == ("impossible", True)
    assert buses.findings(result(shown, "read_cpu_load", 99, "%")) == []


@pytest.mark.parametrize(
    ("shown", "word"),
    [
        ({**mmc("9 (mmc HS200)", 200000000, 8), "mmc.ext_csd": "17", "mmc.caps2": "0x8040"}, ""),
        ({**mmc("9 (mmc HS200)", 200000000, 8), "mmc.ext_csd": "d7", "mmc.caps2": "0x8020"}, "HS400"),
        ({**mmc("1 (mmc high-speed)", 52000000, 8), "mmc.ext_csd": 57, "mmc.caps2": "0x20"}, "HS200"),
        ({**mmc("10 (mmc HS400)", 200000000, 8), "mmc.ext_csd": "d7", "mmc.caps2": "0x8020"}, ""),
        ({**USB, "usb.1-1.version": "2.10"}, "USB 3"),
        ({**USB, "usb.1-1.speed": 5000, "usb.1-1.version": "3.20"}, ""),
    ],
)
def test_a_better_mode_that_is_there_is_a_finding(shown, word):
    found = [f for f in buses.findings(result(shown, value=1.0)) if f.rule == "mode"]
    assert [word in finding.reason for finding in found] == ([True] if word else [])
