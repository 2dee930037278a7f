"""Ethernet tables: TCP in both directions, and UDP at the highest rate without loss."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families import rfc2544
from evmperf.benchmarks.families.network import (
    EthernetLink,
    NetworkServer,
    changing,
    options,
    prepare,
    put_back,
)
from evmperf.benchmarks.step import (
    Measure,
    Outputs,
    Plan,
    Prepare,
    Search,
    Step,
    Trial,
    Trials,
    Where,
    output,
)
from evmperf.boards.board import Board
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import VARIANT, Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import iperf3, mpstat, netperf

_STREAM, _MAERTS = "tcp_stream.txt", "tcp_maerts.txt"
_UDP = "udp.txt"
_IPERF = "iperf3.json"

FRAME_SIZES = (64, 128, 256, 1024, 1518)
"""Bytes of an Ethernet frame with its header and checksum, as RFC 2544 counts them."""
_OVERHEAD = 46
"""Bytes of a frame that are not the datagram's payload: Ethernet, IP, UDP, checksum."""
_GAP = 20
"""Bytes of time on the wire between two frames: preamble and gap."""
_LINK_MBIT = 1000
"""Where the board file does not say how fast the link is."""

THROUGHPUT = Metric(
    "throughput", Unit.MEGABIT_PER_SECOND, Direction.HIGHER, "THROUGHPUT", low=0.001, high=400_000
)
KPPS = Metric(
    "kpps", Unit.KILOPACKET_PER_SECOND, Direction.HIGHER, "Packets Per Second", low=0.001, high=300_000
)


def cpu_load(title: str) -> Metric:
    """The column of the board's CPU load, which tables head differently."""
    return Metric("cpu_load", Unit.PERCENT, Direction.LOWER, title, low=0.0, high=100.0)


_CPU_LOAD = "CPU Load % (LOCAL_CPU_UTIL)"
_DATAGRAM_SIZE = Metric(
    "datagram_size", Unit.BYTE, Direction.NONE, "UDP Datagram Size (LOCAL_SEND_SIZE)", low=1, high=65507
)
_LOSS = Metric("packet_loss", Unit.PERCENT, Direction.LOWER, "Packet Loss %", low=0.0, high=100.0)


def _udp_metrics(load: str) -> tuple[Metric, ...]:
    return (_DATAGRAM_SIZE, THROUGHPUT, KPPS, cpu_load(load))


def kpps(throughput: float, size: int) -> float:
    """Thousands of datagrams a second of a payload throughput in Mbit/s."""
    return throughput * 1e3 / 8 / size


# TCP in both directions


def tcp_benchmark(
    *,
    name: str,
    driver: str,
    title: str,
    section: tuple[str, ...],
    published_tester: str,
    pacing: bool = False,
) -> Benchmark:
    """netperf's TCP_STREAM and TCP_MAERTS at the same time: throughputs are added.

    Each netperf says the CPU load of the whole board during its own test. The two tests are the
    same seconds but for their starts, so the load is the mean of both, not their sum. The guides
    name the row by its command, with the address of their own tester.
    """
    row = "; ".join(
        f"netperf -H {published_tester} -j -c -C -l 60 -t {test}" for test in ("TCP_STREAM", "TCP_MAERTS")
    )

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        link, server = (EthernetLink.of(board, driver), NetworkServer("netserver", Where.TESTER, plan.port))
        seconds = int(case.params["seconds"])
        both = [
            netperf.command(test, link.tester, server.port, seconds, cpu="-c", name=name)
            for test, name in (("TCP_STREAM", _STREAM), ("TCP_MAERTS", _MAERTS))
        ]
        return [
            prepare(link),
            *([_pace(link, _rx_usecs(board, driver))] if pacing else []),
            server.start(),
            Measure(
                "measure",
                f"{both[0]} & {both[1]}; r=$?; wait $! && exit $r",
                seconds * 2 + 60,
                seconds + 1,
                parse=lambda outputs: _tcp_readings(outputs, seconds),
            ),
            server.stop(),
            put_back(),
        ]

    def conditions(board: Board) -> dict[str, str]:
        paced = {VARIANT: f"rx-usecs {_rx_usecs(board, driver)}"} if pacing else {}
        return {**EthernetLink.of(board, driver).conditions, **paced}

    def profile(seconds: int) -> Profile:
        return Profile((Case(row, {"command": row, "seconds": seconds}),))

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=(THROUGHPUT, cpu_load(_CPU_LOAD)),
        profiles={"full": profile(60), "quick": profile(2)},
        place=Place.SHELL,
        steps=steps,
        tools=("netperf", "ethtool") if pacing else ("netperf",),
        tester_tools=("netserver",),
        options=options(driver),
        conditions=conditions,
    )


def _rx_usecs(board: Board, driver: str) -> int:
    return int(board.text(driver, "rx_usecs"))


def _pace(link: EthernetLink, rx_usecs: int) -> Prepare:
    i = link.interface
    cannot = f"the driver of {i} cannot pace interrupts"
    return changing(
        "pace interrupts",
        f"v=$(ethtool -c {i} | sed -n 's/^rx-usecs:[[:space:]]*//p'); "
        f'case "$v" in "" | *[!0-9]*) no "{cannot}: ethtool -c shows no rx-usecs";; esac; '
        f"[ $v = {rx_usecs} ] || {{ m=$(ethtool -C {i} rx-usecs {rx_usecs} 2>&1) || "
        f'no "{cannot}: $m"; undo "ethtool -C {i} rx-usecs $v"; }}',
    )


def _tcp_readings(outputs: Outputs, seconds: int) -> list[Reading]:
    stream = netperf.outcome(output(outputs, _STREAM), "TCP_STREAM", seconds)
    maerts = netperf.outcome(output(outputs, _MAERTS), "TCP_MAERTS", seconds)
    return [
        Reading("throughput", stream.throughput + maerts.throughput),
        Reading("cpu_load", (stream.local_cpu_load + maerts.local_cpu_load) / 2),
    ]


# UDP


def udp_search_benchmark(
    *, name: str, driver: str, title: str, section: tuple[str, ...], ingress: bool, load: str = _CPU_LOAD
) -> Benchmark:
    """The highest rate of datagrams without loss, by `evmperf.benchmarks.families.rfc2544`.

    The guides' netperf with rate control is not what distributions ship, and without it netperf
    sends as fast as it can; iperf3 paces (each millisecond) and counts each datagram. The two are
    recorded under their own names. The client is on the board in both directions: with -R the
    tester's server is the one who sends.
    """

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        link, server = (EthernetLink.of(board, driver), NetworkServer("iperf3", Where.TESTER, plan.port))
        search = _Rates(link, server, case, "-R" if ingress else "")
        most = rfc2544.most_trials(search.resolution)
        return [
            prepare(link),
            server.start(),
            Search("search", search.trials, most * search.timeout_s, most * search.expect_s),
            server.stop(),
            put_back(),
        ]

    def conditions(board: Board) -> dict[str, str]:
        return {**EthernetLink.of(board, driver).conditions, "method": rfc2544.METHOD}

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=_udp_metrics(load),
        profiles={
            "full": _udp_profile(FRAME_SIZES, 60, resolution_percent=1),
            "quick": _udp_profile((64, 1518), 1, resolution_percent=50),
        },
        place=Place.SHELL,
        steps=steps,
        tools=("iperf3",),
        tester_tools=("iperf3",),
        options=options(driver),
        conditions=conditions,
    )


def _udp_profile(frames: Sequence[int], seconds: int, **params: int) -> Profile:
    return Profile(
        tuple(
            Case(
                str(frame),
                {"frame_size": str(frame), "datagram_size": frame - _OVERHEAD, "seconds": seconds, **params},
            )
            for frame in frames
        )
    )


@dataclass(frozen=True)
class _Rates:
    """A search for a rate; `direction` is iperf3's option, seconds and bytes are of each trial."""

    link: EthernetLink
    server: NetworkServer
    case: Case
    direction: str

    @property
    def size(self) -> int:
        return int(self.case.params["datagram_size"])

    @property
    def seconds(self) -> int:
        return int(self.case.params["seconds"])

    @property
    def resolution(self) -> float:
        return float(self.case.params["resolution_percent"]) / 100

    @property
    def timeout_s(self) -> float:
        return self.seconds * 2 + 60

    @property
    def expect_s(self) -> float:
        return self.seconds + 1

    def trials(self) -> Trials:
        """What the best trial measured; refused if none passed."""
        maximum = (self.link.mbit or _LINK_MBIT) * self.size / (self.size + _OVERHEAD + _GAP)
        search = rfc2544.search(maximum, self.resolution)
        rate, best = next(search), dict[str, float]()
        for number in itertools.count(1):
            readings = yield self.trial(number, rate)
            values = {reading.metric: reading.value for reading in readings}
            if values["lost"] == 0:
                best = values  # the search never goes below what has passed
            try:
                rate = search.send(rfc2544.RateTrial(values["offered"], values["lost"] == 0))
            except StopIteration:
                break
        if not best:
            raise RefusedOutput(f"datagrams were lost even at {rate:.3g} Mbit/s, the lowest rate tried")
        return [
            Reading("datagram_size", self.size),
            Reading("throughput", best["throughput"]),
            Reading("kpps", kpps(best["throughput"], self.size)),
            Reading("cpu_load", best["cpu_load"]),
        ]

    def trial(self, number: int, rate: float) -> Trial:
        options = f"-u -b {round(rate * 1e6)} -l {self.size} {self.direction}"
        test = iperf3.command(self.link.tester, self.server.port, self.seconds, options, _IPERF)

        def parse(outputs: Outputs) -> list[Reading]:
            moved = iperf3.datagrams(output(outputs, _IPERF), self.seconds, self.size)
            before, after = output(outputs, mpstat.STAT_BEFORE), output(outputs, mpstat.STAT_AFTER)
            return [
                Reading("asked", rate),
                Reading("offered", moved.offered),
                Reading("sent", moved.sent),
                Reading("lost", moved.lost),
                Reading("throughput", moved.received),
                Reading("cpu_load", mpstat.stat_load(before, after)),
            ]

        return Trial(f"trial{number}", mpstat.around(test), self.timeout_s, self.expect_s, parse=parse)


def udp_flood_benchmark(*, name: str, driver: str, title: str, section: tuple[str, ...]) -> Benchmark:
    """netperf's UDP_STREAM from the tester, as fast as it can: what the board receives of it.

    The CPU load is the board's, which is the remote one for the netperf that runs on the tester.
    """

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        link, server = (EthernetLink.of(board, driver), NetworkServer("netserver", Where.BOARD, plan.port))
        size, seconds = int(case.params["datagram_size"]), int(case.params["seconds"])
        return [
            prepare(link),
            server.start(),
            Measure(
                "measure",
                netperf.command(
                    "UDP_STREAM", link.board, server.port, seconds, cpu="-C", size=size, name=_UDP
                ),
                seconds * 2 + 60,
                seconds + 1,
                parse=lambda outputs: _flood_readings(outputs, size, seconds),
                where=Where.TESTER,
            ),
            server.stop(),
            put_back(),
        ]

    return Benchmark(
        name=name,
        driver=driver,
        title=title,
        section=section,
        metrics=(*_udp_metrics(_CPU_LOAD), _LOSS),
        profiles={"full": _udp_profile(FRAME_SIZES, 60), "quick": _udp_profile((64, 1518), 2)},
        place=Place.SHELL,
        steps=steps,
        tools=("netserver",),
        tester_tools=("netperf",),
        options=options(driver),
        conditions=lambda board: EthernetLink.of(board, driver).conditions,
    )


def _flood_readings(outputs: Outputs, size: int, seconds: int) -> list[Reading]:
    text = output(outputs, _UDP)
    found = netperf.outcome(text, "UDP_STREAM", seconds)
    if found.send_size != size:
        raise RefusedOutput(f"netperf sent {found.send_size} bytes at a time, not {size}", text)
    if not 0 < found.received <= found.sent:
        raise RefusedOutput(f"netperf sent {found.sent} and received {found.received} bytes", text)
    return [
        Reading("datagram_size", found.send_size),
        Reading("throughput", found.throughput),
        Reading("kpps", kpps(found.throughput, size)),
        Reading("cpu_load", found.remote_cpu_load),
        Reading("packet_loss", 100.0 * (1 - found.received / found.sent)),
    ]
