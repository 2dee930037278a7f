"""What a bus can carry in the mode that it is in: no figure is above that.

| bus | limit | source |
|---|---|---|
| eMMC, SD | clock x lines, twice that for double data rate | JESD84-B51, SD Physical Layer |
| OSPI | clock x lines, twice that for D | JESD216 (protocol names), JESD251 |
| PCIe | transfers x lanes x 8/10 (2.5, 5 GT/s) or 128/130 | PCI Express Base 3.0, 4.2 |
| USB 1, 2 | 19 packets of 64 bytes a ms; 13 of 512 bytes in 125 us | USB 2.0, 5.8.4 |
| USB 3 | 8/10 of 5, 128/132 of 10 and 20 Gbit/s | USB 3.2, 6.3 |
| UFS | 1248 (series A) or 1457.6 (B) Mbit/s x 2^(gear - 1) x lanes x 8/10 | M-PHY 4.1, HS gears |
| Ethernet | payload a frame / bytes a frame on the wire | IEEE 802.3, 4A.4.2 (preamble 8, gap 12) |

These are upper bounds: commands, headers and turn-around times of the buses are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from evmperf.model.results import Result
from evmperf.model.state import State, Value
from evmperf.model.units import KIBIBYTE, MEBIBYTE, MEGABYTE, Unit
from evmperf.state.rules import Finding, leading, least

_BYTES = {
    Unit.MEGABYTE_PER_SECOND: MEGABYTE,
    Unit.KIBIBYTE_PER_SECOND: KIBIBYTE,
    Unit.MEBIBYTE_PER_SECOND: MEBIBYTE,
    Unit.KILOBYTE_PER_SECOND: 1000,
    Unit.MEGABIT_PER_SECOND: MEGABYTE / 8,
}
"""Bytes a second."""
_THROUGHPUT = re.compile(r"(?:write_|read_)?throughput|bandwidth")
_MARGIN = 0.01
"""Clocks may be off by that much: see `rules.CLOCK`."""
_BUFFERED = 0.06
"""What a sender has handed over and the wire has not carried yet counts in tests of seconds; more
than the line's own rate is impossible."""


@dataclass(frozen=True)
class Bus:
    """A bus in its present mode: at most `rate` bytes a second. `better` is the mode that it could
    have, in words, "" where nothing says that there is one; `margin` is what a figure may be above.
    """

    mode: str
    rate: float
    better: str = ""
    margin: float = _MARGIN


def shares(result: Result) -> dict[str, float]:
    """The share of each figure, by its best sample, in what its bus can carry."""
    bus = of_result(result)
    found = {}
    for metric, unit in {sample.metric: sample.unit for sample in result.samples}.items():
        factor = _BYTES.get(Unit(unit)) if bus and _THROUGHPUT.fullmatch(metric) else None
        if bus and factor:
            found[metric] = round(max(result.values(metric)) * factor / bus.rate, 4)
    return found


def shared(result: Result) -> State | None:
    """A result's state, with the bus and the figures' shares."""
    bus = of_result(result)
    if result.state is None or bus is None:
        return result.state
    return msgspec.structs.replace(result.state, bus=bus.mode, shares=shares(result))


def findings(result: Result) -> list[Finding]:
    """Figures that are impossible, and a better mode that the bus could have."""
    bus = of_result(result)
    if bus is None:
        return []
    found = [
        Finding("impossible", f"{metric} is {share:.0%} of what {bus.mode} can carry", refuses=True)
        for metric, share in shares(result).items()
        if share > 1 + bus.margin
    ]
    return [*found, Finding("mode", bus.better)] if bus.better else found


def of_result(result: Result) -> Bus | None:
    """The bus that a result was measured over, None where its mode is not known."""
    shown = result.state.shown if result.state else {}
    buses = (kind(shown) for kind in (_mmc, _flash, _ufs, _usb, _pcie))
    # A board may have a disk and a network card at PCIe: the unit says which it was.
    is_net = any(sample.unit == Unit.MEGABIT_PER_SECOND for sample in result.samples)
    bus = _ethernet(shown, result) if is_net else next(filter(None, buses), None)
    return bus if bus and bus.rate > 0 else None


def _mmc(shown: Mapping[str, Value]) -> Bus | None:
    timing = str(shown.get("mmc.ios.timing_spec", ""))
    clock = leading(shown.get("mmc.ios.actual_clock")) or leading(shown.get("mmc.ios.clock"))
    lines = re.search(r"\((\d+) bits\)", str(shown.get("mmc.ios.bus_width", "")))
    if not (clock and lines and timing):
        return None
    mode = re.sub(r"^\d+ \(|\)$", "", timing)
    double = 2 if re.search("DDR|HS400", mode) else 1
    name = f"{mode}, {clock / 1e6:g} MHz, {lines[1]} lines"
    return Bus(name, clock * int(lines[1]) * double / 8, _better_mmc(shown, mode))


_MODES = (
    ("HS400", 0xC0, "caps2", 0x18000),
    ("HS200", 0x30, "caps2", 0x60),
    ("DDR52", 0x0C, "caps", 0x3800),
    ("high-speed", 0x02, "caps", 0x02),
)
"""eMMC's modes, the best first: bits of the card (EXT_CSD byte 196) and of the kernel's host."""


def _better_mmc(shown: Mapping[str, Value], mode: str) -> str:
    """The mode that both an eMMC and its host have, where that is better than the present one."""
    card = _hexadecimal(shown.get("mmc.ext_csd"))
    for name, bits, word, host in _MODES:
        if name in mode:
            break
        if card & bits and _hexadecimal(shown.get(f"mmc.{word}")) & host:
            return f"this card and this host can do {name}; it runs at {mode}"
    return ""


def _hexadecimal(value: Value | None) -> int:
    text = str(value if value is not None else "")
    return int(text, 16) if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,16}", text) else 0


def _flash(shown: Mapping[str, Value]) -> Bus | None:
    """The only flash; of several, none is known to be the one."""
    reads = [name for name in shown if re.fullmatch(r"spi_nor\..*\.read", name)]
    if len(reads) != 1:
        return None
    protocol = re.fullmatch(r"[148][SD]-[148][SD]-([148])([SD])", str(shown[reads[0]]))
    clock = leading(shown.get(reads[0].removesuffix("read") + "max_hz"))
    if not (protocol and clock):
        return None
    rate = clock * int(protocol[1]) * (2 if protocol[2] == "D" else 1) / 8
    return Bus(f"{protocol[0]} at {clock / 1e6:g} MHz", rate)


def _ufs(shown: Mapping[str, Value]) -> Bus | None:
    gear = re.search(r"HS_GEAR(\d)", str(shown.get("ufs.gear", "")))
    lanes = leading(shown.get("ufs.lane"))
    if not (gear and lanes):
        return None
    series = "B" if str(shown.get("ufs.rate", "")).endswith("B") else "A"
    mbit = (1457.6 if series == "B" else 1248.0) * 2 ** (int(gear[1]) - 1)
    name = f"HS-G{gear[1]} series {series}, {lanes:g} lanes"
    return Bus(name, mbit * lanes * 0.8 * 1e6 / 8)


_USB_RATES = {
    12: 19 * 64 * 1e3,
    480: 13 * 512 * 8e3,
    5000: 500e6,
    10000: 10e9 / 8 * 128 / 132,
    20000: 20e9 / 8 * 128 / 132,
}
"""Mbit/s of the signal to bytes a second that bulk transfers can have."""


def _usb(shown: Mapping[str, Value]) -> Bus | None:
    ports = sorted((n for n in shown if re.fullmatch(r"usb\.\d+-[\d.]+\.speed", n)), key=len)
    speed = leading(shown[ports[-1]]) if ports else None
    if speed is None or int(speed) not in _USB_RATES:
        return None
    version = str(shown.get(ports[-1].removesuffix("speed") + "version", ""))
    # USB 2.0 has no version 2.1: it is what a device for USB 3 says of itself at high speed.
    better = "this disk can do USB 3; it runs at high speed" if version == "2.10" else ""
    return Bus(f"USB, {speed:g} Mbit/s", _USB_RATES[int(speed)], better)


def _pcie(shown: Mapping[str, Value]) -> Bus | None:
    speed, lanes = (least(shown, f"current_link_{what}") for what in ("speed", "width"))
    if not (speed and lanes):
        return None
    rate = speed * 1e9 * lanes / 8 * (0.8 if speed <= 5 else 128 / 130)
    return Bus(f"PCIe, {speed:g} GT/s x{lanes:g}", rate)


_LEAST_MTU = 68
"""Of IPv4: RFC 791."""


def _ethernet(shown: Mapping[str, Value], result: Result) -> Bus | None:
    speed, mtu = leading(shown.get("net.speed")), leading(shown.get("net.mtu"))
    if not speed or not mtu or mtu < _LEAST_MTU:
        return None
    size = result.params.get("datagram_size")
    ways = 2 if "bidir" in result.benchmark else 1
    tcp = (mtu - 52) / (mtu + 38)  # with time stamps
    part = _of_udp(size, int(mtu)) if isinstance(size, int) and size > 0 else tcp
    name = f"{speed:g} Mbit/s Ethernet" + (" both ways" if ways == 2 else "")
    return Bus(name, speed * 1e6 / 8 * ways * part, margin=_BUFFERED)


def _of_udp(size: int, mtu: int) -> float:
    """The datagrams' part of what is on the wire; the IP packets of a large one are several."""
    data, room = size + 8, (mtu - 20) // 8 * 8
    packets = [room] * (math.ceil(data / room) - 1)
    packets.append(data - sum(packets))
    return size / sum(max(packet + 20 + 18, 64) + 20 for packet in packets)
