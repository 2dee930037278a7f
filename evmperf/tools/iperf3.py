"""iperf3 (3.9 or newer): command line and parser of its JSON output."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evmperf.model.errors import RefusedOutput
from evmperf.tools._checks import refuse, refusing

_MEGA = 1e6
_SHORTEST = 0.9
"""Minimum part of the requested time that a test must run."""
_ROUNDING = 1e-3
"""Relative tolerance of a rate: iperf3 prints the time of one side with the rate of the other."""
_SIDES = 5e-3
"""Relative tolerance between the times of both sides."""
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
    refused = f'grep -qs "Connection refused" "$OUT/{name}"'
    error = 's/.*"error":[[:space:]]*//p'
    return (
        f"n=0; until ({test}); do r=$?; {refused} && [ $n -lt 3 ] || {{ sed -n '{error}' \"$OUT/{name}\"; "
        f"exit $r; }}; n=$((n + 1)); sleep 0.3; done"
    )


def received(text: str, seconds: int, ways: Sequence[str] = ("",)) -> float:
    """Mbit/s (10^6) received in all directions; raises RefusedOutput for one without data."""
    end = _end(text, seconds, "TCP")
    for way in ways:
        _check_time(end, text, f"sum_received{way}", seconds)
        _check_time(end, text, f"sum_sent{way}", seconds)
    rates = [_rate(end, text, f"sum_received{way}") for way in ways]
    refuse(min(rates) <= 0, "iperf3 moved no data in one direction", text)
    return sum(rates) / _MEGA


def bidirectional(text: str, seconds: int) -> float:
    """The same of both directions at once (`--bidir`)."""
    return received(text, seconds, ("", "_bidir_reverse"))


def datagrams(text: str, seconds: int, size: int) -> Datagrams:
    """A UDP test with datagrams of `size` bytes; raises RefusedOutput if both ends disagree."""
    end = _end(text, seconds, "UDP", size)
    if "sum_received" not in end:
        return _in_one_sum(end, text, seconds, size)
    _check_time(end, text, "sum_received", seconds)
    sent, seen = (_count(end, text, side, "packets") for side in ("sum_sent", "sum_received"))
    # With -R, some releases do not count what the server sent; its bytes are there.
    if not sent and seen:
        sent = _count(end, text, "sum_sent", "bytes") // size
    lost = _count(end, text, "sum_received", "lost_packets")
    arrived = _count(end, text, "sum_received", "bytes")
    odd = sent <= 0 or seen > sent or lost > seen
    refuse(odd, f"iperf3 counts {sent} sent, {seen} seen, {lost} lost", text)
    other = _count(end, text, "sum_sent", "bytes") != sent * size
    refuse(other, f"iperf3's {sent} datagrams are not the bytes that it sent", text)
    # Datagrams out of order were counted as lost when their place was passed.
    other = not 0 <= arrived - (seen - lost) * size <= lost * size
    refuse(other, f"iperf3's {arrived} bytes are not {seen - lost} datagrams", text)
    return Datagrams(
        offered=_rate(end, text, "sum_sent") / _MEGA,
        received=_rate(end, text, "sum_received") / _MEGA,
        sent=sent,
        lost=_with_tail(sent, seen, lost, seconds),
    )


def _with_tail(sent: int, seen: int, lost: int, seconds: int) -> int:
    """Datagrams lost, with those at the end where they are more than a receiver may miss."""
    tail = sent - seen
    return lost + tail if tail > sent * _TAIL_S / seconds else lost


def _in_one_sum(end: dict[str, Any], text: str, seconds: int, size: int) -> Datagrams:
    """Of iperf3 3.9 and 3.10: one sum of the sender's bytes and rate, the other's datagrams and seconds."""
    _check_time(end, text, "sum", seconds)
    moved, seen, lost = (_count(end, text, "sum", k) for k in ("bytes", "packets", "lost_packets"))
    rate, took = (_number(end, text, "sum", key) for key in ("bits_per_second", "seconds"))
    sent = moved // size
    odd = sent <= 0 or moved % size or seen > sent or lost > seen
    refuse(odd, f"iperf3 counts {moved} bytes sent, {seen} seen, {lost} lost", text)
    share = _number(end, text, "sum", "lost_percent")
    other = abs(share - 100 * lost / seen if seen else share) > _ROUNDING
    refuse(other, f"iperf3's {lost} of {seen} datagrams are not {share:g} % lost", text)
    other = abs(rate * took - 8 * moved) > 8 * moved * _SIDES
    refuse(other, f"iperf3's {rate:.4g} bit/s is not {moved} bytes in {took:g} s", text)
    return Datagrams(
        offered=rate / _MEGA,
        received=rate * (seen - lost) / sent / _MEGA,
        sent=sent,
        lost=_with_tail(sent, seen, lost, seconds),
    )


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


def _check_time(end: Any, text: str, side: str, seconds: int) -> None:
    ran = _number(end, text, side, "seconds")
    refuse(ran < _SHORTEST * seconds, f"iperf3's {side} has {ran:g} s instead of {seconds} s", text)


def _number(end: Any, text: str, side: str, key: str) -> float:
    with refusing(f"iperf3's output has no {side}.{key}", text):
        value = end[side][key]
    number = type(value) in (int, float) and 0 <= value < math.inf
    refuse(not number, f"iperf3's {side}.{key} is not a number: {str(value)[:40]!r}", text)
    return float(value)


def _rate(end: Any, text: str, side: str) -> float:
    """Bits per second of one side, checked against its bytes and seconds."""
    rate = _number(end, text, side, "bits_per_second")
    moved, seconds = _number(end, text, side, "bytes"), _number(end, text, side, "seconds")
    other = abs(rate * seconds - 8 * moved) > 8 * moved * _ROUNDING
    refuse(other, f"iperf3's {side} of {rate:.4g} bit/s is not {moved:g} bytes in {seconds:g} s", text)
    return rate


def _count(end: Any, text: str, side: str, key: str) -> int:
    value = _number(end, text, side, key)
    refuse(not value.is_integer(), f"iperf3's {side}.{key} is not a whole number: {value:g}", text)
    return int(value)
