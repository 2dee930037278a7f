"""Ethernet: TCP in both directions, UDP without loss, UDP as fast as it can, and a card in PCIe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.declared import declared
from evmperf.benchmarks.families import network, processor, rfc2544
from evmperf.benchmarks.families.network import NetworkServer, over_link
from evmperf.benchmarks.step import (
    Measure,
    Outputs,
    Parse,
    Plan,
    SearchStep,
    Step,
    Trial,
    Trials,
    Where,
    output,
    reading_of,
    readings,
)
from evmperf.benchmarks.tools import iperf3, mpstat, netperf
from evmperf.benchmarks.tools.netperf import NetperfResult
from evmperf.boards.board import Board
from evmperf.boards.options import Cable
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

_SHELL = ShellTexts(__file__)
_UDP = "udp.txt"
_IPERF = "iperf3.json"

_FRAME_SIZES = (64, 128, 256, 1024, 1518)
"""Bytes of an Ethernet frame with its header and checksum, as RFC 2544 counts them."""
_OVERHEAD = 46
"""Bytes of a frame that are not the datagram's payload: Ethernet, IP, UDP, checksum."""
_GAP = 20
"""Bytes of time on the wire between two frames: preamble and gap."""
_LINK_MBIT = 1000
"""Where the board file does not say how fast the link is."""

_SECTIONS = {
    "eth": ("Ethernet", "Ethernet Driver"),
    "cpsw": ("Ethernet", "CPSW/CPSW2g/CPSW3g Ethernet Driver"),
    "icssg": ("Ethernet", "ICSSG Ethernet Driver"),
}
_CPU_LOAD = "CPU Load % (LOCAL_CPU_UTIL)"
_DATAGRAM_SIZE = Metric(
    "datagram_size", Unit.BYTE, Direction.NONE, "UDP Datagram Size (LOCAL_SEND_SIZE)", 1, 65507
)
_PACKETS = Metric("kpps", Unit.KILOPACKET_PER_SECOND, Direction.HIGHER, "Packets Per Second", 0.001, 300_000)


def _udp_metrics(load: str) -> tuple[Metric, ...]:
    return (_DATAGRAM_SIZE, network.THROUGHPUT, _PACKETS, percentage("cpu_load", load))


def _udp_readings(size: int, rate: float, load: float) -> list[Reading]:
    """`rate` is the payload's in Mbit/s, in datagrams of `size` bytes; `load` in percent."""
    return readings(datagram_size=size, throughput=rate, kpps=rate * 1e3 / 8 / size, cpu_load=load)


def _times_s(seconds: int) -> tuple[float, float]:
    """The timeout of a test of that duration, and the time that it usually takes, in seconds."""
    return seconds * 2 + 60, seconds + 1


def _benchmark(
    driver: str,
    name: str,
    title: str,
    tester_tool: str,
    conditions: Callable[[Board], dict[str, str]] = lambda board: {},
    **more: Any,
) -> Benchmark:
    return Benchmark(
        f"eth_{name}" if driver == "eth" else f"eth_{driver}_{name}",
        driver,
        f"{'Ethernet' if driver == 'eth' else driver.upper()} {title}",
        _SECTIONS[driver],
        tester_tools=(tester_tool,),
        options=network.options(driver),
        conditions=lambda board: {**network.conditions(board, driver), **conditions(board)},
        **more,
    )


def _tcp(driver: str, published_tester: str, *, pacing: bool) -> Benchmark:
    """netperf's TCP_STREAM and TCP_MAERTS at the same time: throughputs are added. The load is the mean of
    both, as each is the whole board's. The guides name the row by its command, with their own tester's
    address.
    """
    tests = {"TCP_STREAM": "tcp_stream.txt", "TCP_MAERTS": "tcp_maerts.txt"}
    row = "; ".join(f"netperf -H {published_tester} -j -c -C -l 60 -t {test}" for test in tests)

    def rx_usecs(board: Board) -> int:
        return int(board.text(driver, "rx_usecs"))

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        cable, server = board.options.cable(driver), NetworkServer("netserver", Where.TESTER, plan.port)
        seconds = int(case.params["seconds"])
        stream, maerts = (
            netperf.command(test, cable.tester_address, server.port, seconds, cpu="-c", name=file)
            for test, file in tests.items()
        )

        def parse(outputs: Outputs) -> list[Reading]:
            both = [netperf.outcome(output(outputs, file), test, seconds) for test, file in tests.items()]
            load = sum(result.local_cpu_load for result in both) / 2
            return readings(throughput=sum(result.throughput for result in both), cpu_load=load)

        command = f"{stream} & {maerts}; r=$?; wait $! && exit $r"
        measure = Measure("measure", command, *_times_s(seconds), parse=parse)
        pace = _SHELL("pace", i=cable.interface, rx_usecs=rx_usecs(board))
        before = [network.changing("pace interrupts", pace)] if pacing else []
        return over_link(board, driver, server, measure, before)

    return _benchmark(
        driver,
        f"tcp_bidir{'_pacing' if pacing else ''}",
        f"TCP Bidirectional Throughput{' Interrupt Pacing' if pacing else ''}",
        "netserver",
        metrics=(network.THROUGHPUT, percentage("cpu_load", _CPU_LOAD)),
        profiles=Profile.crossed({"command": [row]}, seconds=(60, 2)),
        steps=steps,
        tools=("netperf", "ethtool") if pacing else ("netperf",),
        conditions=lambda board: {VARIANT: f"rx-usecs {rx_usecs(board)}"} if pacing else {},
    )


def _udp_search(driver: str, title: str, *, ingress: bool, load: str = _CPU_LOAD) -> Benchmark:
    """The highest rate of datagrams without loss, by `evmperf.benchmarks.families.rfc2544`: with TI's
    netperf, which sends a burst every 10 ms, or with iperf3, as distributions ship netperf without rate
    control. netperf's client sends; iperf3's is on the board in both directions, with -R the server sends.
    """

    search = _Search(driver, ingress)
    own = _benchmark(
        driver,
        f"udp_{'ingress' if ingress else 'egress'}_0loss",
        title,
        "iperf3",
        metrics=_udp_metrics(load),
        profiles={
            "full": _udp_profile(_FRAME_SIZES, 60, resolution_percent=1),
            "quick": _udp_profile((64, 1518), 1, resolution_percent=50),
        },
        steps=search.steps(search.by_iperf3, "iperf3", Where.TESTER, Where.BOARD),
        tools=("iperf3",),
        conditions=lambda board: {"method": rfc2544.METHOD},
    )
    ends = (Where.BOARD, Where.TESTER) if ingress else (Where.TESTER, Where.BOARD)
    tools = ("netserver",), ("netperf", netperf.RATE_CONTROL)
    on_board, beside = tools if ingress else tools[::-1]
    steps = search.steps(search.by_netperf, "netserver", *ends)
    return replace(own, ti=replace(own, steps=steps, tools=on_board, tester_tools=beside))


@dataclass(frozen=True)
class _Search:
    """The search of a driver's port, in one direction."""

    driver: str
    ingress: bool

    def by_iperf3(self, cable: Cable, port: int, size: int, seconds: int, rate: float) -> tuple[str, Parse]:
        way = f"-u -b {round(rate * 1e6)} -l {size} {'-R' if self.ingress else ''}"
        test = iperf3.command(cable.tester_address, port, seconds, way, _IPERF)

        def parse(outputs: Outputs) -> list[Reading]:
            moved = iperf3.datagrams(output(outputs, _IPERF), seconds, size)
            sums = readings(offered=moved.offered, sent=moved.sent, lost=moved.lost)
            figures = readings(throughput=moved.received, cpu_load=processor.load(outputs))
            return [*readings(asked=rate), *sums, *figures]

        return iperf3.again_if_refused(mpstat.around(test), _IPERF), parse

    def by_netperf(self, cable: Cable, port: int, size: int, seconds: int, rate: float) -> tuple[str, Parse]:
        to, cpu = (network.board_ip(cable), "-C") if self.ingress else (cable.tester_address, "-c")
        paced = netperf.pace(rate, size)
        test = netperf.command("UDP_STREAM", to, port, seconds, cpu=cpu, size=size, name=_UDP, paced=paced)

        def parse(outputs: Outputs) -> list[Reading]:
            moved = _stream(output(outputs, _UDP), seconds, size)
            offered, lost = moved.sent * 8 / 1e6 / moved.elapsed_s, (moved.sent - moved.received) // size
            sums = readings(offered=offered, sent=moved.sent // size, lost=lost)
            busy = moved.remote_cpu_load if self.ingress else moved.local_cpu_load
            return [*readings(asked=rate), *sums, *readings(throughput=moved.throughput, cpu_load=busy)]

        return test, parse

    def steps(self, way: Callable[..., tuple[str, Parse]], tool: str, server_at: Where, client: Where) -> Any:
        def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
            cable, server = board.options.cable(self.driver), NetworkServer(tool, server_at, plan.port)
            size, seconds = int(case.params["datagram_size"]), int(case.params["seconds"])
            resolution = float(case.params["resolution_percent"]) / 100
            timeout_s, expect_s = _times_s(seconds)

            def trial(number: int, rate: float) -> Trial:
                text, parse = way(cable, server.port, size, seconds, rate)
                return Trial(f"trial{number}", text, timeout_s, expect_s, parse=parse, where=client)

            def trials() -> Trials:
                """What the best trial measured; refused if none passed."""
                maximum = (cable.link_mbit or _LINK_MBIT) * size / (size + _OVERHEAD + _GAP)
                best = yield from rfc2544.search(maximum, resolution, trial)
                if not best:
                    lowest = maximum * rfc2544.FLOOR
                    raise RefusedOutput(
                        f"datagrams were lost even at {lowest:.3g} Mbit/s, the lowest rate tried"
                    )
                return _udp_readings(size, best["throughput"], best["cpu_load"])

            most = rfc2544.most_trials(resolution)
            search = SearchStep("search", trials, most * timeout_s, most * expect_s)
            return over_link(board, self.driver, server, search)

        return steps


def _stream(text: str, seconds: int, size: int) -> NetperfResult:
    """netperf's datagrams of `size` bytes; raises RefusedOutput for others, or more received than sent."""
    result = netperf.outcome(text, "UDP_STREAM", seconds)
    if result.send_size != size:
        raise RefusedOutput(f"netperf sent {result.send_size} bytes at a time, not {size}", text)
    if not 0 < result.received <= result.sent:
        raise RefusedOutput(f"netperf sent {result.sent} and received {result.received} bytes", text)
    return result


def _udp_profile(frames: Sequence[int], seconds: int, **params: int) -> Profile:
    cases = []
    for frame in frames:
        sizes = {"datagram_size": frame - _OVERHEAD, "seconds": seconds, **params}
        cases.append(Case(str(frame), {"frame_size": str(frame), **sizes}))
    return Profile(tuple(cases))


def _udp_flood(driver: str) -> Benchmark:
    """netperf's UDP_STREAM from the tester, as fast as it can; the CPU load is the remote board's."""

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        cable, server = board.options.cable(driver), NetworkServer("netserver", Where.BOARD, plan.port)
        size, seconds = int(case.params["datagram_size"]), int(case.params["seconds"])
        way = (network.board_ip(cable), server.port, seconds)
        command = netperf.command("UDP_STREAM", *way, cpu="-C", size=size, name=_UDP)

        def parse(outputs: Outputs) -> list[Reading]:
            result = _stream(output(outputs, _UDP), seconds, size)
            loss = Reading("packet_loss", 100.0 * (1 - result.received / result.sent))
            return [*_udp_readings(size, result.throughput, result.remote_cpu_load), loss]

        measure = Measure("measure", command, *_times_s(seconds), parse=parse, where=Where.TESTER)
        return over_link(board, driver, server, measure)

    return _benchmark(
        driver,
        "udp_ingress_loss",
        "UDP Ingress Throughput (possible loss)",
        "netperf",
        metrics=(*_udp_metrics(_CPU_LOAD), percentage("packet_loss", "Packet Loss %")),
        profiles={"full": _udp_profile(_FRAME_SIZES, 60), "quick": _udp_profile((64, 1518), 2)},
        steps=steps,
        tools=("netserver",),
    )


def _card_steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
    """iperf3 in both directions at the same time."""
    cable, server = board.options.cable("pcie"), NetworkServer("iperf3", Where.TESTER, plan.port)
    seconds, window = int(case.params["seconds"]), str(case.params["tcp_window_kb"])
    # LTP-DDT, which the guides' figures come from, limits segments for the smallest window only.
    segment = "-M 1500 " if window == "8" else ""
    test = iperf3.command(
        cable.tester_address, server.port, seconds, f"--bidir {segment}-w {window}K", _IPERF
    )

    parse = reading_of("bandwidth", _IPERF, iperf3.bidirectional, seconds)
    return over_link(board, "pcie", server, Measure("measure", test, *_times_s(seconds), parse=parse))


BENCHMARKS = (
    *(
        _tcp(driver, tester, pacing=pacing)
        for driver, tester in (("eth", "192.168.0.1"), ("cpsw", "192.168.0.1"), ("icssg", "192.168.2.1"))
        for pacing in (False, True)
    ),
    *(_udp_search(driver, "UDP Egress Throughput", ingress=False) for driver in _SECTIONS),
    _udp_search("eth", "UDP Ingress Throughput (0% loss)", ingress=True),
    _udp_search("cpsw", "UDP Ingress Throughput (0% loss)", ingress=True),
    _udp_search("icssg", "UDP Ingress Throughput 0 loss", ingress=True, load="CPU Load %"),
    *(_udp_flood(driver) for driver in _SECTIONS),
    Benchmark(
        **declared(__file__)["pcie_eth"],
        steps=_card_steps,
        conditions=lambda board: network.conditions(board, "pcie"),
    ),
)
