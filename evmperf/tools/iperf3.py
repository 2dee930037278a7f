"""iperf3 (3.9 or newer): command line and parser of its JSON output."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from evmperf.model.errors import RefusedOutput

_MEGA = 1e6
_SHORTEST = 0.9
"""Part of the time asked for that a test must at least have run."""
_ROUNDING = 1e-3
"""How far a rate may be from its bytes and seconds, as a part of it: iperf3 prints the time of one
side with the rate of the other.
"""
_TAIL_S = 0.25
"""A receiving client stops up to so many seconds before the sender does."""


@dataclass(frozen=True)
class Datagrams:
    """Outcome of one UDP test: offered and received payload in Mbit/s (10^6), and datagrams.

    `lost` counts gaps in the sequence; datagrams sent in the last quarter of a second that never
    arrived are no loss, because the receiver may have stopped listening.
    """

    offered: float
    received: float
    sent: int
    lost: int


def command(address: str, port: int, seconds: int, options: str, name: str) -> str:
    """Shell text of one test against the server at `address`, JSON into `$OUT/NAME`."""
    return f'iperf3 -c {address} -p {port} -t {seconds} {options} --json > "$OUT/{name}"'


def bidirectional(text: str, seconds: int) -> float:
    """Sum of what both directions of a TCP test received, in Mbit/s (10^6).

    Raises RefusedOutput unless both moved data for the whole time.
    """
    end = _end(text, seconds, "TCP")
    rates = [_rate(end, text, side) for side in ("sum_received", "sum_received_bidir_reverse")]
    if min(rates) <= 0:
        raise RefusedOutput("iperf3 moved no data in one direction", text)
    return sum(rates) / _MEGA


def datagrams(text: str, seconds: int, size: int) -> Datagrams:
    """Outcome of a UDP test with datagrams of `size` bytes, sent in either direction.

    Raises RefusedOutput unless sender and receiver agree on what was lost.
    """
    end = _end(text, seconds, "UDP", size)
    sent, seen = (_count(end, text, side, "packets") for side in ("sum_sent", "sum_received"))
    lost = _count(end, text, "sum_received", "lost_packets")
    arrived = _count(end, text, "sum_received", "bytes")
    if sent <= 0 or seen > sent or lost > seen:
        raise RefusedOutput(f"iperf3 counts {sent} sent, {seen} seen, {lost} lost", text)
    if _count(end, text, "sum_sent", "bytes") != sent * size:
        raise RefusedOutput(f"iperf3's {sent} datagrams are not the bytes that it sent", text)
    # Datagrams out of order were counted as lost when their place was passed.
    if not 0 <= arrived - (seen - lost) * size <= lost * size:
        raise RefusedOutput(f"iperf3's {arrived} bytes are not {seen - lost} datagrams", text)
    tail = sent - seen
    if tail > sent * _TAIL_S / seconds:
        lost += tail
    return Datagrams(
        offered=_rate(end, text, "sum_sent") / _MEGA,
        received=_rate(end, text, "sum_received") / _MEGA,
        sent=sent,
        lost=lost,
    )


def _end(text: str, seconds: int, protocol: str, size: int | None = None) -> dict[str, Any]:
    """The `end` object of a test that was what it should be."""
    try:
        document = json.loads(text)
        if "error" in document:
            raise RefusedOutput(f"iperf3 says: {str(document['error'])[:200]}", text)
        started, end = document["start"]["test_start"], document["end"]
        facts = started["protocol"], started["duration"], started["num_streams"]
        block = started["blksize"]
    except (ValueError, KeyError, TypeError):
        raise RefusedOutput("iperf3's output is not the JSON it should be", text) from None
    if facts != (protocol, seconds, 1) or (size is not None and block != size):
        raise RefusedOutput(f"iperf3 ran another test: {facts}, blocks of {block} bytes", text)
    ran = _number(end, text, "sum_received", "seconds")
    if ran < _SHORTEST * seconds:
        raise RefusedOutput(f"iperf3 ran {ran:g} s instead of {seconds} s", text)
    return dict(end)


def _number(end: Any, text: str, side: str, key: str) -> float:
    try:
        value = end[side][key]
    except (KeyError, TypeError):
        raise RefusedOutput(f"iperf3's output has no {side}.{key}", text) from None
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise RefusedOutput(f"iperf3's {side}.{key} is no number: {str(value)[:40]!r}", text)
    return float(value)


def _rate(end: Any, text: str, side: str) -> float:
    """Bits a second of one side, which must be those of its bytes and seconds."""
    rate = _number(end, text, side, "bits_per_second")
    moved, seconds = _number(end, text, side, "bytes"), _number(end, text, side, "seconds")
    if abs(rate * seconds - 8 * moved) > 8 * moved * _ROUNDING:
        raise RefusedOutput(
            f"iperf3's {side} of {rate:.4g} bit/s is not {moved:g} bytes in {seconds:g} s", text
        )
    return rate


def _count(end: Any, text: str, side: str, key: str) -> int:
    value = _number(end, text, side, key)
    if not value.is_integer():
        raise RefusedOutput(f"iperf3's {side}.{key} is no whole number: {value:g}", text)
    return int(value)
