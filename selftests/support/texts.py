"""Console texts of a whole boot, after a real one's form, and cutting them into pieces."""

import itertools

from hypothesis import strategies as st

LOGIN = "login: "

SPL = (
    b"\r\nU-Boot SPL 2025.01-ti (Mar 01 2025 - 10:00:00 +0000)\r\n"
    b"SYSFW ABI: 4.0 (firmware rev 0x000a '10.1.8--v10.01.08 (Fiery Fox)')\r\n"
    b"Trying to boot from MMC2\r\n"
)
BOOT = (
    b"\r\n\r\nU-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n\r\n"
    b"SoC:   AM64X SR2.0 HS-FS\r\nDRAM:  2 GiB\r\n"
    b"Hit any key to stop autoboot:  2 \b\b\b 0 \r\n"
    b"=> setenv optargs ''\r\n=> boot\r\n"
    b"## Flattened Device Tree blob at 88000000\r\n\r\nStarting kernel ...\r\n\r\n"
    b"[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x410fd034]\r\n"
    b"[    0.000000] Linux version 6.12.17-ti (oe-user@oe-host) #1 SMP PREEMPT\r\n"
    b"[    1.234567] EXT4-fs (mmcblk1p2): mounted filesystem with ordered data mode\r\n"
    b"[    1.300000] systemd[1]: systemd 257.3 running in system mode (+PAM)\r\n"
    b"[  OK  ] Reached target Multi-User System.\r\n\r\n"
    b"virtual-evm login: "
)
# The kernel's first line is one text only when its stamp is; the second line has one of its own.
BOOT = BOOT.replace(b"[    0.000000] Linux", b"[    0.000013] Linux")
SPL_BOOT = SPL + BOOT

SESSION = (
    b"root\r\nroot@virtual-evm:~# dmesg | tail -n 3\r\n"
    b"[   12.000000] EXT4-fs (mmcblk0p1): mounted filesystem without journal\r\n"
    b"root@virtual-evm:~# cat story.txt\r\n"
    b"Oops, said the program: 17 errors, no panic. Internal error: disk is round\r\n"
    b"We reset U-Boot silently; U-Boot is a boot loader. kernel BUG hunters wanted.\r\n"
    b"See https://u-boot.example/2025.01 and the word panic, Kernel panic, Oops [#1].\r\n"
    b"Starting kernel documentation build ... done\r\n"
    b"root@virtual-evm:~# "
)

PANIC = b"[   20.000000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009\r\n"
OOPS = b"[   20.000000] Internal error: Oops: 0000000096000044 [#1] PREEMPT SMP\r\n"
BUG = b"[   20.000000] kernel BUG at mm/slub.c:4000!\r\n"
RESET = SPL_BOOT[: len(SPL)]
RESET_WITHOUT_SPL = (
    b"\r\n\r\nU-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n\r\nSoC:   AM64X SR2.0 HS-FS\r\n"
)


@st.composite
def chunked(draw, text):
    """`text` in pieces as a console delivers it: a few large ones, or many small ones."""
    places = draw(st.lists(st.integers(1, len(text) - 1), max_size=12, unique=True))
    step = draw(st.sampled_from([0, 1, 2, 7, 16, 64, 255]))
    if step:
        places = sorted({*places, *range(step, len(text), step)})
    edges = [0, *sorted(places), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]
