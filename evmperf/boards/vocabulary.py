"""The features (drivers) that a board file may list.

A misspelt feature would skip its tests silently for ever, so every word is checked against this.
"""

from collections.abc import Mapping

FEATURES: Mapping[str, str] = {
    "boot": "boots to Linux from the medium named in options.boot",
    "system": "runs the system benchmarks (LMBench, Dhrystone, ...)",
    "rt": "runs a PREEMPT_RT kernel",
    "alsa": "has audio capture and playback",
    "graphics": "has a GPU and a display",
    "camera": "has a camera",
    "eth": "has an Ethernet port",
    "cpsw": "has an Ethernet port on the CPSW switch",
    "icssg": "has an Ethernet port on the PRU_ICSSG",
    "ipsec": "can talk IPsec to the tester",
    "pcie": "has a PCIe slot",
    "can": "has a CAN controller",
    "ospi": "has OSPI or QSPI flash",
    "spi": "has SPI NOR flash beside its OSPI or QSPI",
    "nand": "has raw NAND flash",
    "ufs": "has UFS storage",
    "sata": "has a SATA port",
    "msata": "has an mSATA slot",
    "emmc": "has an eMMC",
    "mmcsd": "has an SD card slot",
    "usb": "has a USB port",
    "crypto": "runs OpenSSL",
    "ipc": "has other processors, which run echo firmware",
    "power": "has low-power modes and a meter on its rails",
}
ETHERNET = ("eth", "cpsw", "icssg")
"""Drivers of a port with a cable to the tester; `eth` is any, TI's have names and tables of their own."""
CABLED = (*ETHERNET, "ipsec")
