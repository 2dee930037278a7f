"""iperf3 (3.9 or newer): command line and parser of its JSON output."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts

_SHELL = ShellTexts(__file__)
_MEGA = 1e6
_SHORTEST = 0.9
"""Minimum part of the requested time that a test must run."""
_ROUNDING = 1e-3
"""Relative tolerance of a rate: iperf3 prints the time of one side with the rate of the other."""
_SIDES = 5e-3
"""Relative tolerance between the times of both sides."""
_PACKETS = ("packets", "lost_packets")
_TAIL_S = 0.25
"""Seconds by which a receiving client may stop before the sender."""


@dataclass(frozen=True)
class Datagrams:
    """Outcome of one UDP test: offered and received payload in Mbit/s (10^6), and datagrams. `lost` leaves
    out those of the last quarter of a second, when the receiver may have stopped.
    """

    offered: float
    received: float
    sent: int
    lost: int


def command(address: str, port: int, seconds: int, options: str, name: str) -> str:
    """Shell text of one test against the server at `address`, JSON into `$OUT/NAME`."""
    return f'iperf3 -c {address} -p {port} -t {seconds} {options} --json > "$OUT/{name}"'


def again_if_refused(test: str, name: str) -> str:
    """Shell text that repeats `test` while the server refuses the connection, four times at most: between
    two tests the server closes its port for a moment. Failed, it prints the error in `$OUT/NAME`.
    """
    return _SHELL("again", test=test, name=name)


def received(text: str, seconds: int, ways: Sequence[str] = ("",)) -> float:
    """Mbit/s (10^6) received in all directions; raises RefusedOutput for one without data."""
    end = _end(text, seconds, "TCP")
    rates = [_rate(_side(end, text, f"sum_received{way}", seconds), text) for way in ways]
    for way in ways:
        _side(end, text, f"sum_sent{way}", seconds)
    refuse(min(rates) <= 0, "iperf3 moved no data in one direction", text)
    return sum(rates)


def bidirectional(text: str, seconds: int) -> float:
    """The same of both directions at once (`--bidir`)."""
    return received(text, seconds, ("", "_bidir_reverse"))


def datagrams(text: str, seconds: int, size: int) -> Datagrams:
    """A UDP test with datagrams of `size` bytes; raises RefusedOutput if both ends disagree."""
    end = _end(text, seconds, "UDP", size)
    if not {"sum_sent", "sum_received"} & end.keys():
        return _in_one_sum(_side(end, text, "sum", seconds, *_PACKETS, "lost_percent"), text, seconds, size)
    here = _side(end, text, "sum_sent", seconds, "packets")
    remote = _side(end, text, "sum_received", seconds, *_PACKETS)
    seen, lost, arrived = remote["packets"], remote["lost_packets"], remote["bytes"]
    # With -R, some releases do not count what the server sent; its bytes are there.
    sent = here["packets"] or (seen and here["bytes"] // size)
    odd = sent <= 0 or seen > sent or lost > seen
    refuse(odd, f"iperf3 counts {sent} sent, {seen} seen, {lost} lost", text)
    other = here["bytes"] != sent * size
    refuse(other, f"iperf3's {sent} datagrams are not the bytes that it sent", text)
    # Datagrams out of order were counted as lost when their place was passed.
    other = not 0 <= arrived - (seen - lost) * size <= lost * size
    refuse(other, f"iperf3's {arrived} bytes are not {seen - lost} datagrams", text)
    return Datagrams(_rate(here, text), _rate(remote, text), sent, _with_tail(sent, seen, lost, seconds))


def _with_tail(sent: int, seen: int, lost: int, seconds: int) -> int:
    """Datagrams lost, with those at the end where they are more than a receiver may miss."""
    tail = sent - seen
    return lost + tail if tail > sent * _TAIL_S / seconds else lost


def _in_one_sum(total: dict[str, Any], text: str, seconds: int, size: int) -> Datagrams:
    """Of iperf3 3.9 and 3.10: one sum of the sender's bytes and rate, the other's datagrams and seconds."""
    # iperf_api.c, iperf_print_results.
    moved, seen, lost = total["bytes"], total["packets"], total["lost_packets"]
    sent, share = moved // size, total["lost_percent"]
    odd = sent <= 0 or moved % size or seen > sent or lost > seen
    refuse(odd, f"iperf3 counts {moved} bytes sent, {seen} seen, {lost} lost", text)
    other = abs(share - 100 * lost / seen if seen else share) > _ROUNDING
    refuse(other, f"iperf3's {lost} of {seen} datagrams are not {share:g} % lost", text)
    rate = _rate(total, text, _SIDES)
    return Datagrams(rate, rate * (seen - lost) / sent, sent, _with_tail(sent, seen, lost, seconds))


def _end(text: str, seconds: int, protocol: str, size: int | None = None) -> dict[str, Any]:
    with refusing("iperf3's output is not the JSON expected", text):
        document = json.loads(text)
        if "error" in document:
            raise RefusedOutput(f"iperf3 says: {str(document['error'])[:200]}", text)
        started, end = document["start"]["test_start"], document["end"]
        facts = started["protocol"], started["duration"], started["num_streams"]
        block = started["blksize"]
    other = facts != (protocol, seconds, 1) or (size is not None and block != size)
    refuse(other, f"iperf3 ran another test: {facts}, blocks of {block} bytes", text)
    return dict(end)


def _side(end: Any, text: str, name: str, seconds: int, *more: str) -> dict[str, Any]:
    """The numbers of one side, those of every test and `more`; bytes and datagrams are whole."""
    with refusing(f"iperf3's output has no whole {name}", text):
        side = {key: end[name][key] for key in ("seconds", "bytes", "bits_per_second", *more)}
    for key, value in side.items():
        number = type(value) in (int, float) and 0 <= value < math.inf
        number = number and (type(value) is int or key not in ("bytes", *_PACKETS))
        refuse(not number, f"iperf3's {name}.{key} is not a number: {str(value)[:40]!r}", text)
    short = side["seconds"] < _SHORTEST * seconds
    refuse(short, f"iperf3's {name} has {side['seconds']:g} s instead of {seconds} s", text)
    return side


def _rate(side: dict[str, Any], text: str, tolerance: float = _ROUNDING) -> float:
    """Mbit/s of one side, checked against its bytes and seconds."""
    rate, moved = float(side["bits_per_second"]), side["bytes"]
    other = abs(rate * side["seconds"] - 8 * moved) > 8 * moved * tolerance
    refuse(other, f"iperf3's {rate:.4g} bit/s is not {moved} bytes in {side['seconds']:g} s", text)
    return rate / _MEGA
