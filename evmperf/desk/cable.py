"""The network cable between this machine and the board, of which no file says anything."""

import contextlib
import ipaddress
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence

_OURS, _THEIRS = "192.168.187.1", "192.168.187.2/24"
"""Addresses for the two ends of a cable that has none."""


def between(links: Mapping[str, Sequence[str]], *, far: bool) -> dict[str, str]:
    """The options of `eth` for the board's interface at whose other end this machine is, {} where none
    is known; a board that is reached over the network (`far`) gets no new address.
    """
    ours = list(_our_addresses())
    for name, addresses in links.items():
        for address in addresses:
            with contextlib.suppress(ValueError):
                network = ipaddress.ip_interface(address).network
                for own in ours:
                    if ipaddress.ip_address(own) in network:
                        return _options(name, address, own)
    if len(links) == 1 and not far:
        return _options(next(iter(links)), _THEIRS, _OURS)
    return {}


def _options(interface: str, board: str, tester: str) -> dict[str, str]:
    return {"interface": interface, "board_address": board, "tester_address": tester}


def _our_addresses() -> Iterable[str]:
    """This machine's IPv4 addresses, none where `ip` does not say them."""
    try:
        done = subprocess.run(["ip", "-j", "-4", "address"], capture_output=True, timeout=10, check=True)
        said = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return
    for link in said:
        if link.get("ifname") != "lo":
            yield from (entry["local"] for entry in link.get("addr_info", ()))
