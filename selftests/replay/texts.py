"""Parts that recordings end before, and forms that none of them shows, in words of our own."""

from __future__ import annotations

LOADER = (
    b"\r\nU-Boot SPL 2024.04-ti (Feb 02 2025 - 11:00:00 +0000)\r\n"
    b"SYSFW ABI: 4.0 (firmware rev 0x000a '10.0.8--v10.00.08 (Fiery Fox)')\r\n"
    b"Trying to boot from MMC2\r\nStarting ATF on ARM64 core...\r\n\r\n"
    b"NOTICE:  BL31: v2.10.0(release):v2.10.0\r\n\r\n"
    b"U-Boot SPL 2024.04-ti (Feb 02 2025 - 11:00:01 +0000)\r\nTrying to boot from MMC2\r\n\r\n\r\n"
    b"U-Boot 2024.04-ti (Feb 02 2025 - 11:00:01 +0000)\r\n\r\n"
    b"SoC:   AM64X SR2.0 HS-FS\r\nModel: Board of our own\r\nDRAM:  2 GiB\r\n"
    b"Hit any key to stop autoboot:  2 \b\b\b 0 \r\n"
)
"""Up to the countdown."""

_KERNEL = (
    b"## Flattened Device Tree blob at 88000000\r\n\r\nStarting kernel ...\r\n\r\n"
    b"[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x410fd034]\r\n"
    b"[    0.000000] Kernel command line: console=ttyS2 {arguments} root=/dev/mmcblkDp2\r\n"
)
_ROOT = (
    b"[    1.400000] mmcD: new CARD card at address 0001\r\n"
    b"[    1.500000] mmcblkD: mmcD:0001 CARD1 29.7 GiB\r\n"
    b"[    1.600000] EXT4-fs (mmcblkDp2): mounted filesystem with ordered data mode\r\n"
)
_INIT = (
    b"[    1.700000] Run /sbin/init as init process\r\n"
    b"[    1.800000] systemd[1]: systemd 255.4 running in system mode (+PAM)\r\n"
    b"[  OK  ] Reached target Multi-User System.\r\n\r\n"
)
LOGIN = b"Arago 2023.10 our-board ttyS2\r\n\r\nour-board login: "


def _on(text: bytes, disk: bytes, card: bytes) -> bytes:
    return text.replace(b"mmcblkD", b"mmcblk" + disk).replace(b"mmcD", b"mmc" + disk).replace(b"CARD", card)


def kernel(disk: bytes = b"1", card: bytes = b"ultra high speed SDR104 SDHC") -> bytes:
    """From U-Boot's last words to the mounted root."""
    return _on(_KERNEL + _ROOT, disk, card)


SD = kernel() + _INIT + LOGIN
EMMC = kernel(b"0", b"HS200 MMC") + _INIT + LOGIN
QUIET = b"\r\nStarting kernel ...\r\n\r\n[    0.611111] debugfs: Directory 'x' already there\r\n" + LOGIN
SYSVINIT = kernel() + b"INIT: version 3.04 booting\r\n" + LOGIN
INIT_SHELL = (
    kernel()
    + b"[    1.700000] Run /bin/sh as init process\r\n"
    + b"sh: cannot set terminal process group (-1): Inappropriate ioctl for device\r\n"
    + b"sh: no job control in this shell\r\n\x1b[?2004hsh-5.2# "
)
EFI = (
    b"\r\nBooting /efi\\boot\\bootaa64.efi\r\nEFI stub: Booting Linux Kernel...\r\n"
    b"EFI stub: Using DTB from configuration table\r\nEFI stub: Exiting boot services...\r\n"
    + SD[SD.index(b"[    0.000000]") :]
)
CUT_LOGIN = SD.removesuffix(b"login: ") + b"log[   12.345678] random: crng init done\r\nin: "
"""A kernel's message in the middle of the prompt."""

ARGS_ALL = {
    "bootcmd": "run args_all args_mmc; boot_it",
    "args_all": "setenv optargs earlycon=ns16550a,mmio32,0x02800000 ${mtdparts}",
    "args_mmc": "setenv bootargs console=${console} ${optargs} root=/dev/mmcblk1p2 rw",
    "optargs": "",
}
"""The scripts of a U-Boot that sets `optargs` itself; what they do to it is in ReplayBoard."""
