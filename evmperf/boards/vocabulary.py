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
    "system": {
        "dhrystone": Option(
            str, "the program that is its Dhrystone", ("runDhrystone", "evmperf-dhrystone")
        ),
        "whetstone": Option(
            str, "the program that is its Whetstone", ("runWhetstone", "evmperf-whetstone")
        ),
        "linpack": Option(
            str, "the program that is its Linpack", ("runLinpack", "evmperf-linpack")
        ),
        "nbench": Option(str, "the program that is its NBench", ("runNBench.sh", "evmperf-nbench")),
        "stream": Option(str, "the program that is its STREAM", ("stream_c", "evmperf-stream")),
        "coremark_pro": Option(str, "folder of CoreMark-PRO, e.g. /opt/coremark-pro"),
        "multibench": Option(str, "folder of MultiBench, e.g. /opt/multibench"),
    },
    "emmc": _STORAGE,
    "ospi": {
        "flash": Option(
            str, "kind of flash, as the guides' summaries name it", ("OSPI NOR", "QSPI NAND")
        ),
        "device": Option(str, "the MTD partition that is read, named as in /proc/mtd"),
        "scratch": Option(str, "the MTD partition that benchmarks may overwrite"),
        "uboot_bus": Option(str, "bus and chip select for U-Boot's sf probe, e.g. 0:0"),
        "uboot_offset": Option(int, "first byte of what benchmarks may overwrite in U-Boot"),
        "uboot_size": Option(int, "how many bytes that is"),
    },
    "mmcsd": {
        **_STORAGE,
        "uboot_fat_partition": Option(
            str, "number of the FAT partition that U-Boot may write a file on"
        ),
    },
    "pcie": {
        **_link("eth_"),
        "scratch": Option(str, "the SSD's partition that benchmarks may overwrite"),
    },
    "ufs": _STORAGE
    | {"uboot_device": Option(int, "the number of the device for U-Boot's scsi command")},
    "usb": {
        "scratch": Option(str, "the partition of a USB disk that benchmarks may overwrite"),
        "gadget_host": Option(
            str, "the machine that sees the board's gadget as its USB disk", ("board", "tester")
        ),
        "gadget_controller": Option(
            str, "the USB device controller of that port, where /sys/class/udc has several"
        ),
        "gadget_module": Option(str, "the controller's kernel module, where nothing else loads it"),
    },
    "alsa": {
        "playback": Option(str, "the ALSA device that plays, hw:CARD,DEVICE"),
        "capture": Option(str, "the ALSA device that records, hw:CARD,DEVICE"),
        "period_frames": Option(int, "frames of a period: 256 on AM6x, 64 on J7 in the guides"),
    },
    "graphics": {
        "compositor": Option(
            str, "the systemd service of the compositor, which holds the display (weston)"
        ),
    },
    "power": {
        "rails": Option(list, "the rails that the meter reads, named as in the guide's table"),
        "deep_sleep_command": Option(
            str, "puts the board into deep sleep for {seconds}, e.g. rtcwake -s {seconds} -m mem"
        ),
        "rtc_ddr_command": Option(
            str, "leaves only RTC and DDR on for {seconds}; returns when the board is awake again"
        ),
        "sleep_s": Option(int, "seconds of one sleep, long enough for the rails to settle"),
    },
    "cpsw": {**_link(), "rx_usecs": _RX_USECS},
    "icssg": {**_link(), "rx_usecs": _RX_USECS},
    "ipsec": _link(),
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
