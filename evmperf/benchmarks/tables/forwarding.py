"""Forwarding between two ports of the board, as a switch and as a node of an HSR ring.

The tester is both ends: each of its two interfaces is in a network namespace of its own while it is
measured, so that the only way from one to the other leads through the board. The ring is open
between them for the same reason.
"""

from collections.abc import Sequence
from dataclasses import replace

from evmperf.benchmarks.benchmark import Benchmark, Profile, percentage
from evmperf.benchmarks.families import network, processor
from evmperf.benchmarks.step import Measure, Outputs, Plan, Prepare, Step, Where, output, reading_of
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.model.results import Case, Reading
from evmperf.tools import forwarding, iperf3

_JSON = "iperf3.json"
_ENDS = "end-a", "end-b"
_ADDRESSES = "192.168.77.1", "192.168.77.2"
_NODE = "evmperf-node"
_SETTLE_S = 6
"""Seconds from the watch's start to its window, in which the test begins."""
_HARDWARE = "with HW"
_KINDS = {"switch": "Switch", "hsr": "HSR"}
_OFFLOADS = "hsr-fwd-offload", "hsr-dup-offload", "hsr-tag-ins-offload", "hsr-tag-rm-offload"

_LOADS = tuple(
    # The guides' ends are boards as well; the tester's loads say nothing of one.
    replace(percentage(f"{who}_load", f"CPU Load % ({who.upper()})"), required=who == "forwarding")
    for who in ("sender", "forwarding", "receiver")
)


def _node(kind: str, ports: Sequence[str], *, offload: bool) -> Prepare:
    first, second = ports
    hardware = (
        '[ -n "$(cat /sys/class/net/$p/phys_switch_id 2>/dev/null)" ] || '
        'no "$p does not forward in hardware: its driver is no switch"'
        if kind == "switch"
        else "; ".join(
            f'm=$(ethtool -K $p {feature} on 2>&1) || no "$p has no {feature} ($m)"; '
            f'undo "ethtool -K $p {feature} off"'
            for feature in _OFFLOADS
        )
    )
    make = (
        f"type bridge && ip link set {first} master {_NODE} && ip link set {second} master {_NODE}"
        if kind == "switch"
        else f"type hsr slave1 {first} slave2 {second} version 1"
    )
    return network.changing(
        "node",
        f"modprobe -aq bridge hsr; for p in {first} {second}; do d=/sys/class/net/$p; "
        '[ -e $d ] || no "the board has no network interface $p: correct the board file"; '
        f"{hardware if offload else ':'}; "
        '[ $(($(cat $d/flags) & 1)) = 1 ] || { ip link set $p up || exit 3; undo "ip link set $p down"; }; '
        f"done; [ ! -e /sys/class/net/{_NODE} ] || ip link del {_NODE}; "
        f'{{ ip link add {_NODE} {make}; }} || exit 3; undo "ip link del {_NODE}"; ip link set {_NODE} up',
    )


def _at(end: str) -> str:
    """Shell text in front of a command that is to run at one end."""
    return f'nsenter -n -t "$(cat ${{OUT%/*}}/{end})"'


def _ends(kind: str, interfaces: Sequence[str], port: int) -> Prepare:
    """Make the tester both ends, a server at the second, and wait until the first reaches it."""
    # A process holds each namespace: names would not outlive a step where the tester is a namespace.
    ring = (
        "at ip link add open type veth peer name end && at ip link set open up; "
        'm=$(at ip link add ring type hsr slave1 $i slave2 open version 1 2>&1) || no "the kernel '
        'of the tester cannot do HSR ($m)"; i=ring; '
    )
    lend = "".join(
        f"i={interface}; "
        '[ -e /sys/class/net/$i ] || no "the tester has no network interface $i"; '
        "had=$(ip -o -4 addr show dev $i | while read -r _ _ _ net _; do "
        'printf "%s" "ip addr add $net dev $i; "; done); '
        "setsid unshare -n sleep 7200 </dev/null >/dev/null 2>&1 & p=$!; "
        f'echo $p >${{OUT%/*}}/{end}; undo "kill $p"; '
        "until [ $(readlink /proc/$p/ns/net) != $(readlink /proc/$$/ns/net) ]; do sleep 0.1; done; "
        r'ip link set $i netns $p || exit 3; undo "nsenter -n -t $p ip link set $i netns \$\$; ${had}'
        'ip link set $i up"; at ip link set $i up; '
        f"{ring if kind == 'hsr' else ''}"
        f"at ip addr add {address}/24 dev $i && at ip link set $i up || exit 3; "
        for end, interface, address in zip(_ENDS, interfaces, _ADDRESSES, strict=True)
    )
    here, there = map(_at, _ENDS)
    return network.changing(
        "ends",
        f'modprobe -aq hsr veth; at() {{ nsenter -n -t $p "$@"; }}; {lend}'
        f'setsid {there} iperf3 -s -p {port} </dev/null >/dev/null 2>&1 & undo "kill $!"; '
        f"k=0; until {here} iperf3 -c {_ADDRESSES[1]} -p {port} -n 1K --connect-timeout 1000 "
        ">/dev/null 2>&1; do "
        '[ $k -lt 20 ] || no "no traffic passes the board: check both cables"; k=$((k + 1)); '
        "sleep 0.5; done",
        where=Where.TESTER,
        timeout_s=90,
    )


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
        metrics=(network.throughput("THROUGHPUT"), *_LOADS),
        profiles=Profile.both("mode", rows, seconds=(60, 20)),
        steps=steps,
        tools=("ip",),
        tester_tools=("ip", "iperf3", "nsenter"),
        options=tuple((driver, key) for key in ("interface", "second_interface", "tester_interfaces")),
        lacks=lacks,
        conditions=lambda board: {"ports": " ".join(ports(board))},
    )


BENCHMARKS = tuple(_benchmark(driver, kind) for driver in ("cpsw", "icssg") for kind in _KINDS)
