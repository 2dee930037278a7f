"""The payload of UDP datagrams that a row of a table is about."""

from collections.abc import Mapping

from evmperf.model.figures import Figure, Key

_PACKETS_OFF = 0.6
"""Thousands of packets a second, which are printed whole."""
_UDP_HEADERS = 46
"""Ethernet, IPv4, UDP and frame check sequence, in bytes."""


def payload(figures: Mapping[Key, Figure], key: Key) -> int | None:
    """The payload of a row of UDP datagrams, in bytes, as throughput and packets show it: guides
    head rows with the frame, and send that much less the headers or, in some releases, that much.
    0 for neither, None where it cannot be told.
    """
    throughput, packets = (figures.get(key._replace(metric=metric)) for metric in ("throughput", "kpps"))
    if "_udp_" not in key.benchmark or not key.case.isdigit() or not throughput or not packets:
        return None
    sizes = (int(key.case) - _UDP_HEADERS, int(key.case))
    off = [abs(packets.mean * size - throughput.mean * 1e3 / 8) for size in sizes]
    fitting = [size for size, by in zip(sizes, off, strict=True) if by <= _PACKETS_OFF * size]
    return fitting[0] if len(fitting) == 1 else None if fitting else 0
