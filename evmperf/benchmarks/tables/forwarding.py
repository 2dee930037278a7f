"""Forwarding between two ports of the board, as a switch and as a node of an HSR ring, which is open. The
tester is both ends: each of its two interfaces is in a network namespace of its own, so that the only way
leads through the board.
"""

from collections.abc import Sequence
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.families import network, processor
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, Where, output, reading_of
from evmperf.benchmarks.tools import forwarding, iperf3
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_JSON = "iperf3.json"
_ENDS = "end-a", "end-b"
_ADDRESSES = "192.168.77.1", "192.168.77.2"
_NODE = "evmperf-node"
_SETTLE_S = 6
"""Seconds from the watch's start to its window, in which the test begins."""
_HARDWARE = "with HW"
_KINDS = {"switch": "Switch", "hsr": "HSR"}
_SHELL = ShellTexts(__file__)

_LOADS = tuple(
    # The guides' ends are boards as well; the tester's loads say nothing of one.
    replace(percentage(f"{who}_load", f"CPU Load % ({who.upper()})"), required=who == "forwarding")
    for who in ("sender", "forwarding", "receiver")
)


def _node(kind: str, ports: Sequence[str], *, offload: bool) -> Prepare:
    about = {"first": ports[0], "second": ports[1], "node_name": _NODE}
    make, hardware = _SHELL(f"make_{kind}", **about), _SHELL(f"hardware_{kind}") if offload else ":"
    return network.changing("node", _SHELL("node", **about, make=make, hardware=hardware))


def _ends(kind: str, interfaces: Sequence[str], port: int) -> Prepare:
    ring = f"{_SHELL('ring')}; " if kind == "hsr" else ""
    lend = "; ".join(
        _SHELL("lend", end=end, interface=interface, address=address, ring=ring)
        for end, interface, address in zip(_ENDS, interfaces, _ADDRESSES, strict=True)
    )
    here, far = map(_at, _ENDS)
    command = _SHELL("ends", lend=f"{lend};", here=here, there=far, port=port, server=_ADDRESSES[1])
    return network.changing("ends", command, where=Where.TESTER, timeout_s=90)


def _at(end: str) -> str:
    """Shell text in front of a command that is to run at one end."""
    return f'nsenter -n -t "$(cat ${{OUT%/*}}/{end})"'


def _benchmark(driver: str, kind: str) -> Benchmark:
    name = _KINDS[kind]

    def ports(board: Board) -> tuple[str, str]:
        return board.text(driver, "interface"), board.text(driver, "second_interface")

    def steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
        seconds, offload = int(case.params["seconds"]), _HARDWARE in case.label
        ends = getattr(board.options, driver).tester_interfaces
        if len(ends) != 2:
            raise UsageError(
                f"{board.file_name}: targets.main.options.{driver}.tester_interfaces names "
                f"{len(ends)} interfaces instead of two"
            )
        window_s = seconds - 2 * _SETTLE_S

        def load(outputs: Outputs) -> list[Reading]:
            forwarding.received_mbit(output(outputs, forwarding.TEXT_FILE))
            return [Reading("forwarding_load", processor.load(outputs))]

        rate = reading_of("throughput", _JSON, iperf3.received, seconds)
        client = iperf3.command(_ADDRESSES[1], plan.port, seconds, "", _JSON)
        test = f"{_at(_ENDS[0])} {client}"
        return [
            _node(kind, ports(board), offload=offload),
            _ends(kind, ends, plan.port),
            Prepare("watch", forwarding.watch(ports(board)[0], _SETTLE_S, window_s), 30, 0.5),
            Measure("measure", test, seconds * 2 + 60, seconds + 2, parse=rate, where=Where.TESTER),
            Measure("load", forwarding.collect(), 90, 1, parse=load),
            network.put_back(Where.TESTER),
            network.put_back(),
        ]

    def lacks(board: Board, case: Case) -> str:
        in_software = board.text(driver, "forwarding") == "software"
        if in_software and _HARDWARE in case.label:
            return "these ports cannot forward in hardware"
        if kind == "switch" and not in_software and _HARDWARE not in case.label:
            return "a switch port always forwards in hardware"
        return ""

    rows = tuple(f"{name} with {by} Offload" for by in ("HW", "SW"))
    return Benchmark(
        name=f"eth_{driver}_{kind}_forwarding",
        driver=driver,
        title=f"{driver.upper()} {name} Mode Forwarding",
        section=("Ethernet", f"{driver.upper()} Ethernet Driver"),
        metrics=(network.THROUGHPUT, *_LOADS),
        profiles=Profile.both("mode", rows, seconds=(60, 20)),
        steps=steps,
        tools=("ip",),
        tester_tools=("ip", "iperf3", "nsenter"),
        options=tuple((driver, key) for key in ("interface", "second_interface", "tester_interfaces")),
        lacks=lacks,
        conditions=lambda board: {"ports": " ".join(ports(board))},
    )


BENCHMARKS = tuple(_benchmark(driver, kind) for driver in ("cpsw", "icssg") for kind in _KINDS)
