"""The words a board file may use: features (drivers) and their options.

A misspelt feature would skip its tests silently for ever, so every word is checked against this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One key of a board file: its type, and what it means in a sentence fit for `--help`."""

    type: type
    help: str
    choices: tuple[str, ...] = ()


FEATURES: Mapping[str, str] = {
    "boot": "boots to Linux from the medium named in options.boot",
    "system": "runs the system benchmarks (LMBench, Dhrystone, ...)",
    "rt": "runs a PREEMPT_RT kernel",
    "alsa": "has audio capture and playback",
    "graphics": "has a GPU and a display",
    "cpsw": "has an Ethernet port on the CPSW switch",
    "icssg": "has an Ethernet port on the PRU_ICSSG",
    "ipsec": "can talk IPsec to the tester",
    "pcie": "has a PCIe slot",
    "ospi": "has OSPI or QSPI flash",
    "ufs": "has UFS storage",
    "emmc": "has an eMMC",
    "mmcsd": "has an SD card slot",
    "usb": "has a USB port",
    "crypto": "runs OpenSSL",
    "power": "has low-power modes and a meter on its rails",
}

_STORAGE = {
    "device": Option(str, "the whole device under Linux, e.g. /dev/mmcblk0"),
    "scratch": Option(str, "the partition that benchmarks may overwrite, e.g. /dev/mmcblk0p1"),
    "uboot_device": Option(int, "the number of the device for U-Boot's mmc command"),
    "uboot_partition": Option(
        str, "label or number of the scratch partition for U-Boot's part command"
    ),
}


def _link(prefix: str = "") -> dict[str, Option]:
    """A cable to the tester."""
    return {
        f"{prefix}interface": Option(str, "the network interface under Linux, e.g. eth0"),
        f"{prefix}board_address": Option(
            str, "its address with the prefix length, e.g. 192.168.100.2/24; set if it is missing"
        ),
        f"{prefix}tester_address": Option(str, "the tester's address at the cable's other end"),
        f"{prefix}link_mbit": Option(int, "the speed that the link must have, in Mbit/s"),
    }


_RX_USECS = Option(int, "microseconds to collect packets for, with interrupt pacing (500)")

OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "board": {
        "name": Option(str, "the board's name in the guides, e.g. am64xx-hsevm"),
        "title": Option(str, "the board's name in the guide's table of evaluation modules"),
        "description": Option(str, "its line in that table: revision, clock, memory"),
        "revision": Option(str, "board revision, where the description does not say"),
        "profile": Option(str, "what is measured when nobody asks", ("full", "quick")),
        "release": Option(str, "SDK release, where the image does not tell"),
        "virtual": Option(str, "image variant of a virtual EVM; real boards have none"),
    },
    "boot": {
        "medium": Option(str, "what the board boots from", ("sd", "emmc", "nvme", "virtio")),
        "max_failures": Option(int, "failed boot cycles before the board is called broken"),
    },
    "emmc": _STORAGE,
    "mmcsd": _STORAGE,
    "cpsw": {**_link(), "rx_usecs": _RX_USECS},
    "icssg": {**_link(), "rx_usecs": _RX_USECS},
    "ipsec": _link(),
    "pcie": _link("eth_"),
    "absent": {},
    "tester": {
        "host": Option(str, "SSH name of the machine beside the board"),
    },
}

ABSENT = "absent"
"""Section of features and benchmarks that the board cannot have, each with the reason."""

REQUIRED: tuple[tuple[str, str], ...] = (
    ("board", "name"),
    ("board", "title"),
    ("board", "description"),
    ("board", "profile"),
    ("boot", "medium"),
)
