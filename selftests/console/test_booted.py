"""What booted, and how words get onto the kernel's command line: pure text to text."""

import re
from pathlib import Path

import pytest

from evmperf.boards.console import booted
from selftests.support import programs
from selftests.support.texts import BOOT

PRINTED = """\
args_all=setenv optargs earlycon=${earlycon} ${mtdparts}
args_mmc=run finduuid;setenv bootargs console=${console} ${optargs} root=PARTUUID=${uuid} rw
bootcmd=run envboot; bootflow scan -lb
preboot=if test -n x; then
  echo two lines
fi
fdt_addr_r=0x88000000

Environment size: 1234/131068 bytes
"""


def test_the_environment_is_read_with_values_of_several_lines():
    found = booted.variables(PRINTED.replace("\n", "\r\n"))
    assert list(found) == ["args_all", "args_mmc", "bootcmd", "preboot", "fdt_addr_r"]
    assert found["preboot"] == "if test -n x; then\n  echo two lines\nfi"
    assert found["fdt_addr_r"] == "0x88000000"


BOOTARGS = "setenv bootargs console=ttyS2 root=/dev/mmcblk1p2"
LONG = {"args": "setenv optargs a; echo 'b'", "use": "x ${optargs}", "more": "setenv optargs " + "y" * 1000}


@pytest.mark.parametrize(
    ("environment", "words", "commands"),
    [
        # A script that sets the variable is given the words.
        (
            booted.variables(PRINTED),
            "init=/bin/sh",
            ["setenv args_all 'setenv optargs earlycon=${earlycon} ${mtdparts} init=/bin/sh'"],
        ),
        # Where no script reads the variable, bootargs gets them.
        ({"bootcmd": f"{BOOTARGS}; booti x"}, "quiet", [f"setenv bootcmd '{BOOTARGS} quiet; booti x'"]),
        (booted.variables(PRINTED), "", []),
        (LONG, "z", []),  # what cannot be typed is left alone
    ],
)
def test_the_words_are_given_to_what_makes_the_command_line(environment, words, commands):
    found = booted.arguments_commands(environment, "optargs", words)
    assert found == [f"setenv optargs '{words}'", *commands]
    assert booted.overwriting(booted.variables(PRINTED), "optargs") == ["args_all"]


@pytest.mark.parametrize(
    ("card", "root"),
    [
        ("ultra high speed SDR104 SDHC", "root: mmcblk1p2 type: SD"),
        ("high speed SDXC", "root: mmcblk1p2 type: SD"),
        ("HS400 MMC", "root: mmcblk1p2 type: MMC"),
        ("SDIO", None),
    ],
)
def test_the_kernels_messages_say_what_the_root_is(card, root):
    text = (
        "[    0.0] Kernel command line: a b=c root=/dev/mmcblk1p2\r\n"
        f"[    1.0] mmc1: new {card} card at address 1\r\n"
        "[    1.1] mmcblk1: mmc1:0001 X 1 GiB\r\n"
        "[    1.2] EXT4-fs (mmcblk1p2): mounted filesystem with ordered data mode\r\n"
    )
    assert booted.shown(text) == booted.BootedSystem("a b=c root=/dev/mmcblk1p2", root)


CARD = "[    1.0] mmc1: new high speed SDHC card at address 1\r\n[    1.1] mmcblk1: mmc1:0001 X 1 GiB\r\n"
MOUNTED = "[    {:.1f}] EXT4-fs (mmcblk1p{}): mounted filesystem with ordered data mode\r\n"
VFS = "[    {:.1f}] VFS: Mounted root ({} filesystem){} on device {}.\r\n"
ON_CARD = "root: mmcblk1p2 type: SD"


@pytest.mark.parametrize(
    ("root", "lines", "found"),
    [
        ("PARTUUID=1-02", [MOUNTED.format(1.2, 2), VFS.format(1.3, "ext4", "", "179:2")], ON_CARD),
        ("UUID=1", [MOUNTED.format(1.2, 2), VFS.format(1.3, "ext4", " readonly", "179:34")], ON_CARD),
        ("/dev/mmcblk1p2", [MOUNTED.format(1.2, 2)], ON_CARD),
        # The card is mounted after the root, or before another partition is.
        ("/dev/nfs", [MOUNTED.format(9, 2)], "root: /dev/nfs"),
        (
            "/dev/mtdblock4",
            [VFS.format(1.1, "jffs2", "", "31:4"), MOUNTED.format(9, 2)],
            "root: jffs2 on /dev/mtdblock4",
        ),
        ("/dev/ram0", [MOUNTED.format(9, 2)], "root: /dev/ram0"),
        ("PARTUUID=1-02", [MOUNTED.format(1.2, 1), VFS.format(1.3, "ext4", "", "179:2")], None),
        ("PARTUUID=1-02", [VFS.format(1.3, "squashfs", "", "179:2"), MOUNTED.format(9, 2)], None),
        ("LABEL=root", [MOUNTED.format(1.2, 2)], None),
        ("/dev/sda2", [MOUNTED.format(1.2, 2)], None),
    ],
)
def test_what_the_kernel_mounted_as_root_decides_or_the_system_is_asked(root, lines, found):
    text = f"[    0.0] Kernel command line: quiet root={root} rw\r\n{CARD}{''.join(lines)}"
    assert booted.shown(text).root == found


def test_a_quiet_console_says_nothing():
    assert booted.shown("Starting kernel ...\r\n\r\nlogin: ") == booted.BootedSystem()
    assert booted.answered("sh: not found") == booted.BootedSystem()


def test_the_question_is_answered_by_a_real_shell():
    done = programs.run("sh", "-c", booted.QUESTION, check=True)
    words = Path("/proc/cmdline").read_text(encoding="utf-8").split()
    system = booted.answered(done.stdout)
    assert (system.arguments or "").split() == words
    assert system.root is not None
    wrong = booted.complaint("sd", "", " ".join([*words[:1], "evmperf.not_there"]), system, ())
    assert "booted without evmperf.not_there:" in str(wrong)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("", []),
        ("U-Boot 2025.01-ti", ["U-Boot"]),
        ("6.12.17-ti", ["kernel"]),
        ("mmcblk1p2", ["root"]),
        ("(mmcblk1p2): mounted", []),
        ("rauc.slot=A", ["root"]),
    ],
)
def test_two_systems_differ_in_what_their_consoles_name(change, names):
    line = "[    0.1] Kernel command line: console=ttyS2 root=/dev/mmcblk1p2 rauc.slot=A rw\r\n"
    text = BOOT.decode().replace("[    1.234567]", f"{line}[    1.234567]")
    later = text.replace(change, re.sub(r"[12A7](?=\D*$)", "9", change)) if change else text
    first = booted.identity(text)
    assert list(first) == ["U-Boot", "kernel", "root"]
    other = booted.another_system(first, booted.identity(later))
    assert [name for name in first if f"{name} is " in str(other or "")] == names
    assert booted.another_system(first, {}) is None  # a quiet boot shows nothing
