"""netperf 2.7: command line and parser of its keyed output (`-k`); other lines are refused, as that of a
netperf without rate control, which sends as fast as it can.
"""

import re
from dataclasses import dataclass

from evmperf.benchmarks.tools._checks import agree, over, refuse, span

_ASKED = """
    DIRECTION THROUGHPUT THROUGHPUT_UNITS ELAPSED_TIME MEAN_LATENCY LOCAL_CPU_UTIL REMOTE_CPU_UTIL
    LOCAL_BYTES_SENT LOCAL_BYTES_RECVD REMOTE_BYTES_RECVD LOCAL_SEND_SIZE
"""
KEYS = tuple(_ASKED.split())
"""The requested keys, in netperf's order."""

_TESTS = {
    "TCP_STREAM": ("Send", "REMOTE_BYTES_RECVD"),
    "TCP_MAERTS": ("Receive", "LOCAL_BYTES_RECVD"),
    "UDP_STREAM": ("Send", "REMOTE_BYTES_RECVD"),
}
"""A test's direction, and the bytes that its throughput is made of: those that arrived. A sender that its
clock interrupts does not count what it has sent of its last message, which shows on a slow link.
"""
_ROUNDING = 0.002
"""Relative tolerance between throughput and bytes beyond their two decimals."""
_LOST_BYTES = 0.5
"""Minimum part of one side's bytes that the other side must have moved."""
_UNITS = "10^6bits/s"
_NOT_ASKED = -1.0
_MOST_PERCENT = 100.5
_COUNTS = ("_SENT", "_RECVD", "_SIZE")
_SHORTEST = 0.9
"""Minimum part of the requested time that a test must run."""
_LONGEST = 2.0
"""How many times the requested time, beside `_SLACK_S`, a test runs at most: it times by the wall clock,
which may have been set meanwhile."""
_SLACK_S = 1.0
_WHOLE = re.compile(r"\d+")
_DECIMALS = re.compile(r"\d+\.\d\d|-1\.00")


@dataclass(frozen=True)
class NetperfResult:
    """What one test says: payload in Mbit/s (10^6, of UDP_STREAM what arrived), CPU loads of whole machines
    in percent (-1: not asked for), bytes, seconds.
    """

    throughput: float
    local_cpu_load: float
    remote_cpu_load: float
    sent: int
    received: int
    send_size: int
    elapsed_s: float


RATE_CONTROL = "netperf-b"
"""Among the programs of a machine, the name of a netperf that was built with rate control, as TI's is."""
_BURST_MS = 10


def pace(mbit: float, size: int) -> str:
    """netperf's options that offer about so many Mbit/s of datagrams of `size` bytes: a burst every 10 ms."""
    return f"-b {max(1, round(mbit * 1e6 / 8 / size * _BURST_MS / 1e3))} -w {_BURST_MS}ms "


def command(
    test: str, address: str, port: int, seconds: int, *, cpu: str, name: str, size: int = 0, paced: str = ""
) -> str:
    """Shell text of one test, result into `$OUT/NAME`; `cpu` is `-c` for this machine's load, `-C` for the
    other's, `size` the bytes sent at a time (0: netperf's choice), `paced` what `pace` says.
    """
    message = f"-m {size} " if size else ""
    return (
        f"netperf -P 0 -H {address} -p {port} -j {cpu} -l {seconds} -t {test} {paced}-- {message}"
        f'-k {",".join(KEYS)} > "$OUT/{name}"'
    )


def outcome(text: str, test: str, seconds: int) -> NetperfResult:
    """Read the keyed output of a test of so many seconds; raises RefusedOutput."""
    direction, counted = _TESTS[test]
    lines = text.splitlines()
    for line, key in zip(lines, KEYS, strict=False):
        other = not line.startswith(f"{key}=")
        refuse(other, f"netperf was asked for {key} and printed {line[:120]!r}", text)
    refuse(len(lines) != len(KEYS) or not text.endswith("\n"), "netperf's output is cut or too long", text)
    values = dict(line.split("=", 1) for line in lines)
    refuse(values["THROUGHPUT_UNITS"] != _UNITS, f"netperf's unit is not {_UNITS}", text)
    refuse(values["DIRECTION"] != direction, f"netperf's direction does not match {test}", text)
    numbers = {key: value for key, value in values.items() if key not in ("DIRECTION", "THROUGHPUT_UNITS")}
    for key, value in numbers.items():
        number = (_WHOLE if key.endswith(_COUNTS) else _DECIMALS).fullmatch(value)
        refuse(not number, f"netperf's {key} is not a number: {value[:40]!r}", text)
    result = NetperfResult(
        throughput=float(numbers["THROUGHPUT"]),
        local_cpu_load=float(numbers["LOCAL_CPU_UTIL"]),
        remote_cpu_load=float(numbers["REMOTE_CPU_UTIL"]),
        sent=int(float(numbers["LOCAL_BYTES_SENT"])),
        received=int(float(numbers["REMOTE_BYTES_RECVD"])),
        send_size=int(float(numbers["LOCAL_SEND_SIZE"])),
        elapsed_s=float(numbers["ELAPSED_TIME"]),
    )
    refuse(result.throughput <= 0, "netperf moved no data", text)
    _check_bytes(result, int(numbers[counted]), numbers, text)
    lost = test == "TCP_STREAM" and not _LOST_BYTES < result.received / max(result.sent, 1) < 2
    refuse(lost, f"netperf sent {result.sent} bytes and received {result.received}", text)
    early = result.elapsed_s < _SHORTEST * seconds
    refuse(early, f"netperf ran {result.elapsed_s:g} s instead of {seconds} s", text)
    late = result.elapsed_s > _LONGEST * seconds + _SLACK_S
    refuse(
        late, f"netperf says {result.elapsed_s:g} s for {seconds} s: the wall clock was set meanwhile", text
    )
    return result


def _check_bytes(result: NetperfResult, counted: int, numbers: dict[str, str], text: str) -> None:
    """Throughput, bytes and time must agree, and what was sent be whole messages."""
    megabits = counted * 8 / 1e6
    near = megabits * (1 - _ROUNDING), megabits * (1 + _ROUNDING)
    same = agree(over(near, span(numbers["ELAPSED_TIME"])), span(numbers["THROUGHPUT"]))
    rate = megabits / max(result.elapsed_s, 0.01)
    refuse(not same, f"netperf's bytes give {rate:.4g} {_UNITS}, not its throughput", text)
    rest = result.send_size and result.sent % result.send_size
    refuse(rest, f"netperf sent {result.sent} bytes, not messages of its size", text)
    low, high = sorted((result.local_cpu_load, result.remote_cpu_load))
    one = low == _NOT_ASKED != high
    refuse(not one, "netperf was asked for the CPU load of one of the two machines", text)
    refuse(high > _MOST_PERCENT, f"a CPU load of {high:g} % is impossible", text)
