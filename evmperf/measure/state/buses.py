"""What a bus can carry in the mode that it is in, or in its best one: no figure is above that.

| bus | limit | source |
|---|---|---|
| eMMC, SD | clock x lines, twice that for double data rate | JESD84-B51, SD Physical Layer |
| OSPI | clock x lines, twice that for D | JESD216, JESD251; K3's clock: assigned-clock-rates in k3-*.dtsi |
| PCIe | transfers x lanes x 8/10 (2.5, 5 GT/s) or 128/130 | PCI Express Base 3.0, 4.2 |
| USB 1, 2 | 19 packets of 64 bytes a ms; 13 of 512 bytes in 125 us | USB 2.0, 5.8.4 |
| USB 3 | 8/10 of 5, 128/132 of 10 and 20 Gbit/s | USB 3.2, 6.3 |
| UFS | 1248 (series A) or 1457.6 (B) Mbit/s x 2^(gear - 1) x lanes x 8/10 | M-PHY 4.1, HS gears |
| Ethernet | payload a frame / bytes a frame on the wire | IEEE 802.3, 4A.4.2 (preamble 8, gap 12) |
| SATA | 8/10 of 6 Gbit/s | Serial ATA 3.0, 7.2 |
| audio | frames x channels x bits a sample | the row's rate, 16-bit stereo |
| DDR | transfers x width | buses.yaml |
| CPU | clock x 8 operations a cycle: four lanes of 32 bits, fused multiply and add | Arm DDI 0487, FMLA |

These are upper bounds: commands, headers and turn-around times of the buses are left out.
"""

import math
import re
from collections.abc import Mapping
from types import SimpleNamespace

import msgspec

from evmperf.boards import modes, yamlfile
from evmperf.measure.state.finding import Finding, leading
from evmperf.measure.state.rules import least
from evmperf.model.results import Result
from evmperf.model.state import State, Value
from evmperf.model.units import KIBIBYTE, MEBIBYTE, MEGABYTE, Unit

_BYTES: Mapping[str, float] = {
    Unit.MEGABYTE_PER_SECOND: MEGABYTE,
    Unit.KIBIBYTE_PER_SECOND: KIBIBYTE,
    Unit.MEBIBYTE_PER_SECOND: MEBIBYTE,
    Unit.KILOBYTE_PER_SECOND: 1000,
    Unit.MEGABIT_PER_SECOND: MEGABYTE / 8,
    Unit.BIT_PER_SECOND: 1 / 8,
    Unit.KILOFLOPS: 1000,
}
"""Bytes, or operations of the processor, a second."""
_THROUGHPUT = re.compile(r"(?:write_|read_|rx_|tx_)?throughput(?:_mib)?|bandwidth|perf")
_MARGIN = 0.01
"""Clocks may be off by that much: see `rules.CLOCK`."""
_BUFFERED = 0.06
"""The same of Ethernet, see buses.yaml."""


class Bus(msgspec.Struct, frozen=True):
    """A bus in its present mode: at most `rate` bytes a second. `better` is the mode that it could
    have, in words, "" where nothing says that there is one, which carries `times` as much; `margin`
    is what a figure may be above.
    """

    mode: str
    rate: float
    better: str = ""
    times: float = 0.0
    margin: float = _MARGIN


_LIMITS = SimpleNamespace(**yamlfile.own("measure/state/buses.yaml"))
_BEST = {name: Bus(**bus) for name, bus in _LIMITS.best.items()}


def shares(result: Result, board: str = "") -> dict[str, float]:
    """The share of each figure, by its best sample, in what its bus can carry."""
    bus, units = of_result(result, board), {sample.metric: sample.unit for sample in result.samples}
    by_metric = {name: _share(bus, name, unit, max(result.values(name))) for name, unit in units.items()}
    return {metric: round(share, 4) for metric, share in by_metric.items() if share}


def _share(bus: Bus | None, metric: str, unit: str, value: float) -> float:
    """A throughput's share of what its bus can carry; 0 for other figures."""
    is_throughput = bus and _THROUGHPUT.fullmatch(metric)
    return value * _BYTES.get(unit, 0.0) / bus.rate if bus and is_throughput else 0.0


def shared(result: Result, board: str = "") -> State | None:
    """A result's state, with the bus and the figures' shares."""
    bus, parts = of_result(result, board), shares(result, board)
    if bus is None or not parts:
        return result.state
    return msgspec.structs.replace(result.state or State(), bus=bus.mode, shares=parts)


def findings(result: Result, board: str = "") -> list[Finding]:
    """Figures that are impossible, and a better mode that the bus could have."""
    bus = of_result(result, board)
    if bus is None:
        return []
    if lesser := lesser_mode(result, board):
        bus = msgspec.structs.replace(bus, better=str(lesser), times=lesser.times)
    refusals = [
        Finding("impossible", f"{metric} is {share:.0%} of what {bus.mode} can carry", refuses=True)
        for metric, share in shares(result, board).items()
        if share > 1 + bus.margin
    ]
    if lanes := _lanes(result, board):
        bus = msgspec.structs.replace(bus, better=lanes[0], times=lanes[1])
    return [*refusals, Finding("mode", bus.better, size=bus.times)] if bus.better else refusals


def lesser_mode(result: Result, board: str) -> modes.LesserMode | None:
    """The mode below TI's expectation that a result was measured in, whatever card and host say of
    themselves: a wrong device tree hides a better mode from the host.
    """
    shown = result.state.shown if result.state else {}
    timing, silicon = (str(shown.get(name, "")) for name in ("mmc.ios.timing_spec", "soc.revision"))
    return modes.lesser(board, result.driver, timing, silicon)


def _lanes(result: Result, board: str) -> tuple[str, float] | None:
    """A link with fewer lanes than board and device could have, where the host's end says that it has no
    more: `num-lanes` of a device tree.
    """
    shown = result.state.shown if result.state else {}
    ends = [leading(shown[name]) or 0 for name in shown if name.endswith(".max_link_width")]
    now, could = least(shown, "current_link_width"), min(max(ends, default=0), modes.lanes(board))
    if result.driver != "pcie" or not now or now >= could or min(ends) > now:
        return None
    allowed = f"TI's own check of this board allows {modes.lanes(board)} lanes of PCIe"
    return f"{allowed}; one end says that it has {now:g}", could / now


def impossible(benchmark: str, case: str, metric: str, *, unit: str, mean: float, board: str = "") -> str:
    """Why a figure of a table cannot be, whatever modes its board has; "" where it can."""
    bus = most(benchmark, case, board)
    part = _share(bus, metric, unit, mean)
    if not bus or part <= 1 + bus.margin:
        return ""
    return f"{mean:g} {unit} is more than {bus.mode} can carry ({mean / part:g})"


def share_in_words(benchmark: str, case: str, metric: str, *, unit: str, mean: float, board: str = "") -> str:
    """A figure's share of the best mode of its bus, for people; "" where that is not known."""
    bus = most(benchmark, case, board)
    part = _share(bus, metric, unit, mean)
    return f"{part:.0%} of {bus.mode}" if bus and part else ""


def of_result(result: Result, board: str = "") -> Bus | None:
    """The bus that a result was measured over in its mode, or in its best one where that is not
    known; None for what has no bus.
    """
    shown = result.state.shown if result.state else {}
    # A board may have a disk and a network card at PCIe: the unit says which it was.
    if any(sample.unit == Unit.MEGABIT_PER_SECOND for sample in result.samples):
        bus = _ethernet(shown, result)
    else:
        bus = next(filter(None, (kind(shown) for kind in (_mmc, _flash, _ufs, _usb, _pcie))), None)
    return bus if bus and bus.rate > 0 else most(result.benchmark, result.case, board)


def _mmc(shown: Mapping[str, Value]) -> Bus | None:
    timing = str(shown.get("mmc.ios.timing_spec", ""))
    clock = leading(shown.get("mmc.ios.actual_clock")) or leading(shown.get("mmc.ios.clock"))
    lines = re.search(r"\((\d+) bits\)", str(shown.get("mmc.ios.bus_width", "")))
    if not (clock and lines and timing):
        return None
    mode = re.sub(r"^\d+ \(|\)$", "", timing)
    rate = clock * int(lines[1]) * (2 if re.search("DDR|HS400", mode) else 1) / 8
    name = f"{mode}, {clock / 1e6:g} MHz, {lines[1]} lines"
    return Bus(name, rate, *_better_mmc(shown, mode, clock, rate))


_SLOW_CLOCK = 0.9


def _better_mmc(shown: Mapping[str, Value], mode: str, clock: float, rate: float) -> tuple[str, float]:
    """What a card and its host could do better, and how many times better that is."""
    card = _hexadecimal(shown.get("mmc.ext_csd"))
    for name, most, bits, word, host in _LIMITS.modes:
        if name in mode:
            break
        if card & bits and _hexadecimal(shown.get(f"mmc.{word}")) & host:
            return f"this card and this host can do {name}; it runs at {mode}", most / rate
    fast = next((hz for name, hz in _LIMITS.clocks.items() if re.search(name, mode)), 0.0)
    if clock < _SLOW_CLOCK * fast:
        return f"{mode} goes up to {fast / 1e6:g} MHz; the bus runs at {clock / 1e6:g} MHz", fast / clock
    return "", 0.0


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


def _usb(shown: Mapping[str, Value]) -> Bus | None:
    ports = sorted((n for n in shown if re.fullmatch(r"usb\.\d+-[\d.]+\.speed", n)), key=len)
    speed = leading(shown[ports[-1]]) if ports else None
    if speed is None or int(speed) not in _LIMITS.usb:
        return None
    version = str(shown.get(ports[-1].removesuffix("speed") + "version", ""))
    # USB 2.0 has no version 2.1: it is what a device for USB 3 says of itself at high speed.
    better = "this disk can do USB 3; it runs at high speed" if version == "2.10" else ""
    rate = _LIMITS.usb[int(speed)]
    return Bus(f"USB, {speed:g} Mbit/s", rate, better, _LIMITS.usb[5000] / rate if better else 0.0)


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


_OPERATIONS = 8
"""Of one core a cycle, in single precision; vfpbench got 7.9 of a Cortex-A72 (wlog.flatlib.jp/2015/10/30)."""
_STEREO_16_BITS = 4
_OFF_RATE = 0.02
"""What a codec's clock may be off."""
_BEYOND_CACHES = re.compile(r"bw_mem-.*-(?:16|20)mb")


def most(benchmark: str, case: str = "", board: str = "") -> Bus | None:
    """What a row of a table can be at most in the best mode of its bus on any board; of memory and
    processor, on that board. None where that is not known.
    """
    if re.fullmatch(r"audio_\w+", benchmark) and re.fullmatch(r"\d{4,6}", case):
        return Bus(f"{case} Hz of 16-bit stereo", int(case) * _STEREO_16_BITS, margin=_OFF_RATE)
    chip = next((limits for name, limits in _LIMITS.chips.items() if board.startswith(name)), None)
    if chip and (benchmark == "stream" or (benchmark == "lmbench" and _BEYOND_CACHES.fullmatch(case))):
        return Bus(f"DDR, {chip[0]} bits x {chip[1]} MT/s", chip[0] / 8 * chip[1] * 1e6)
    if chip and benchmark == "linpack":
        return Bus(f"one core, {chip[2]} MHz x {_OPERATIONS}", chip[2] * 1e6 * _OPERATIONS)
    return next((bus for name, bus in _BEST.items() if re.fullmatch(name, benchmark)), None)
