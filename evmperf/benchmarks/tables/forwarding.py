"""Forwarding between two ports of the board, as a switch and as a node of an HSR ring, which is open. The
tester is both ends: each of its two interfaces is in a network namespace of its own, so that the only way
leads through the board.

A watch on the board has its load, and proof that frames went through it: its window lies within the tester's
test if frames came at both ends as in its middle.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.families import network, processor
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, Where, output, reading_of
from evmperf.benchmarks.tools import iperf3, mpstat
from evmperf.benchmarks.tools._checks import read_twice, refuse, twice, whole
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Case, Reading
from evmperf.model.shelltext import ShellTexts

_JSON = "iperf3.json"
_FRAMES = "frames.txt"
_ENDS = "end-a", "end-b"
_ADDRESSES = "192.168.77.1", "192.168.77.2"
_NODE = "evmperf-node"
_SETTLE_S = 6
"""Seconds from the watch's start to its window, in which the test begins."""
_END_S = 0.3
"""Seconds of a look at either end of the window."""
_LEAST = 0.1
"""Part of the mean rate that either end must have: the rate of TCP varies, a test that is over has none."""
_HARDWARE = "with HW"
_KINDS = {"switch": "Switch", "hsr": "HSR"}
_LOOKS = re.compile(r"(\d+\.\d\d) (\d+)\n" * 4)
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


def _watch(interface: str, window_s: int) -> tuple[Prepare, Measure]:
    """Watching in the background what an interface receives, and the processors' load, for `window_s` seconds
    with a look of _END_S at either end; and what collects it, repeated the same.
    """
    about = {"state": f"{STEP_FOLDER}/forwarding", "text_file": _FRAMES, "interface": interface}
    looks = {"before": mpstat.snapshot(mpstat.STAT_BEFORE), "after": mpstat.snapshot(mpstat.STAT_AFTER)}
    times = {"settle_s": _SETTLE_S, "end_s": _END_S, "within_s": f"{window_s - 2 * _END_S:g}"}
    stats = {"stat_before": mpstat.STAT_BEFORE, "stat_after": mpstat.STAT_AFTER}
    collect = _SHELL("collect", **about, **stats, frames=twice(f"cat {_FRAMES}", _FRAMES))

    def load(outputs: Outputs) -> list[Reading]:
        received_mbit(output(outputs, _FRAMES))
        return [Reading("forwarding_load", processor.load(outputs))]

    watch = Prepare("watch", _SHELL("watch", **about, **looks, **times), 30, 0.5)
    return watch, Measure("load", collect, 90, 1, parse=load)


def received_mbit(text: str) -> float:
    """Mbit/s (10^6) received in the window; raises RefusedOutput for a window outside the test."""
    match = whole(_LOOKS, read_twice(text), "the watch of the forwarding board is not whole", text)
    looks = list(zip(map(float, match.groups()[::2]), map(int, match.groups()[1::2]), strict=True))

    def rate(first: int, last: int) -> float:
        (begin, before), (end, after) = looks[first], looks[last]
        backwards = end <= begin or after < before
        refuse(backwards, "the counters of the forwarding board did not go forward", text)
        return (after - before) * 8 / 1e6 / (end - begin)

    mean = rate(0, 3)
    unsteady = mean <= 0 or min(rate(0, 1), rate(2, 3)) < _LEAST * mean
    refuse(unsteady, "the board was not forwarding during its whole window", text)
    return mean


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
        rate = reading_of("throughput", _JSON, iperf3.received, seconds)
        client = iperf3.command(_ADDRESSES[1], plan.port, seconds, "", _JSON)
        test = f"{_at(_ENDS[0])} {client}"
        watch, load = _watch(ports(board)[0], seconds - 2 * _SETTLE_S)
        return [
            _node(kind, ports(board), offload=offload),
            _ends(kind, ends, plan.port),
            watch,
            Measure("measure", test, seconds * 2 + 60, seconds + 2, parse=rate, where=Where.TESTER),
            load,
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
        profiles=Profile.crossed({"mode": rows}, seconds=(60, 20)),
        steps=steps,
        tools=("ip",),
        tester_tools=("ip", "iperf3", "nsenter"),
        options=tuple((driver, key) for key in ("interface", "second_interface", "tester_interfaces")),
        lacks=lacks,
        conditions=lambda board: {"ports": " ".join(ports(board))},
    )


BENCHMARKS = tuple(_benchmark(driver, kind) for driver in ("cpsw", "icssg") for kind in _KINDS)
