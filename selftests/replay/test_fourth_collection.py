"""The fourth collection of real consoles, the small inputs of our own form beside it, and what evmperf
makes of each text beside a person's verdicts.
"""

from __future__ import annotations

import csv

import pytest

from evmperf.boards.console import signs
from selftests.replay import test_third_collection as third
from selftests.support import seeds
from selftests.support.consoles import verdict
from selftests.support.replayboard import recorded

CONSOLES, SMALL = seeds.place("real/consoles-4"), seeds.place("real/small-5")
pytestmark = seeds.needs("real/consoles-4")
NO_LOGIN = {
    "lava-exynos-busybox": "a shell without a login waits",
    "ok-logspec-shuboz-shell": "a shell without a login waits",
    # The stamps of another program stand before each line.
    "bbb-mender-grabserial": "a login of another form waits",
    # Its countdown is not of the excerpt.
    "ok-ae350-shell": "autoboot was not stopped",
}
"""Healthy, and told what to set."""
FAILED = {
    "ae350-falcon": ("alarm", "lab", "SPL started Linux itself (falcon mode)", ""),
    "am3358-ubi-badseq": ("alarm", "board", "kernel panic", "mount root"),
    "am335x-mmc1-dataabort": ("alarm", "board", "U-Boot crashed", ""),
    "am6252-xmodem-spl": ("hang", "board", "the SPL stops where it first uses the DDR memory", ""),
    "am6252-ymodem-wait": ("hang", "lab", "the loader waits for an image from a host", ""),
    "am62xlp-nand-spresponse": ("hang", "board", "the last sign of trouble is", "control firmware (-60)"),
    "am6411-no-restart-i2331": (
        "hang",
        "board",
        "the board did not start again after its reset by software",
        "resetting",
    ),
    "am69-aquila-startkernel": ("time", "board", "the kernel prints nothing", ""),
    "apalis-imx6-fitconf": ("hang", "board", "there is no kernel that U-Boot can start", ""),
    "bbai64-update-mmc1": ("hang", "board", "", "in the SPL after TF-A"),
    "bbb-yocto-mute-extlinux": ("time", "board", "the kernel prints nothing", ""),
    "bbbw-no-dtb": ("hang", "board", "there is no kernel that U-Boot can start", ""),
    "dm816x-extabort": ("alarm", "board", "kernel oops", ""),
    "dracut-initqueue-loop": ("time", "board", "the root file system did not appear", "dracut-initqueue"),
    "flatcar-verity-interleaved": ("time", "board", "a file system is damaged", "verity"),
    "haos-noslot-reset": ("alarm", "board", "silent reset", "No valid slot"),
    "hikey960-first-lines": ("time", "board", "the kernel stops before its first program", ""),
    "hung-iowait-618": ("alarm", "board", "hung task", ""),
    "imx6s-gadget-oops": ("alarm", "board", "kernel oops", ""),
    "k1-spl-bootdevice": ("alarm", "board", "boot loader stopped", "Unsupported Boot Device!"),
    "kinetis-unhandled": ("hang", "board", "an image is refused", ""),
    "lava-exynos-nfs-panic": ("alarm", "board", "kernel panic", ""),
    "lava-hikey-spinlock": ("time", "board", "the kernel crashed", ""),
    "lava-panda-welcome": ("time", "board", "the last sign of trouble is", ""),
    "lava-riscv-magic": ("hang", "board", "there is no kernel that U-Boot can start", ""),
    "lkft-db410c-oops": ("alarm", "board", "kernel oops", ""),
    "lmp-imx8mm-strict": ("alarm", "board", "boot loader stopped", "valid config node"),
    "logspec-mrc-loop": ("hang", "board", "boot loader in a loop", ""),
    "logspec-shuboz-third-start": ("alarm", "lab", "no U-Boot in this boot", ""),
    "maix-run-init": ("time", "board", "the system runs and gives no login", "no login (check"),
    "nas220-nand-range": ("hang", "board", "an image is refused", ""),
    "odroidc2-uimage-mute": ("time", "board", "the kernel prints nothing", ""),
    "opi-rv2-earlycon": ("alarm", "lab", "autoboot was not stopped", ""),
    "opizero-spi-crc-stamped": ("hang", "board", "an image is refused", ""),
    "ostree-root-missing": ("time", "board", "a unit of systemd failed", "[FAILED]"),
    "palmetto-fit-ramdisk": ("hang", "board", "an image is refused", ""),
    "reform-dracut-noshell": ("alarm", "board", "emergency mode", ""),
    "rk3326-waitroot-partuuid": ("time", "board", "the root file system did not appear", "PARTUUID"),
    "rpi0-bootcmd-broken": ("alarm", "board", "silent reset", "Unknown command"),
    "rpi5-efi-mute": ("time", "board", "the kernel prints nothing", ""),
    "syz-1000": ("alarm", "board", "hung task", ""),
    "syz-316": ("alarm", "board", "kernel panic", ""),
    "syz-46": ("alarm", "board", "kernel oops", ""),
    "syz-524": ("alarm", "board", "kernel oops", ""),
    "syz-534": ("alarm", "board", "hung task", ""),
    "syz-535": ("alarm", "board", "soft lockup", ""),
    "syz-541": ("alarm", "board", "kernel oops", ""),
    "syz-542": ("alarm", "board", "kernel panic", ""),
    "syz-554": ("alarm", "board", "kernel oops", ""),
    "syz-555": ("alarm", "board", "kernel oops", ""),
    "syz-604": ("alarm", "board", "kernel oops", ""),
    "syz-659": ("alarm", "board", "kernel oops", ""),
    "syz-676": ("alarm", "board", "kernel oops", ""),
    "syz-677": ("alarm", "board", "kernel oops", ""),
    "syz-688": ("alarm", "board", "RCU stall", ""),
    "syz-734": ("alarm", "board", "kernel oops", ""),
    "tda4vh-env-btrfs": ("hang", "board", "the last sign of trouble is", "parent transid"),
    "ti-am62p-ecc-abort": ("alarm", "board", "U-Boot crashed", ""),
    "ti-am64x-notacked-auth": ("alarm", "board", "image refused", ""),
    "ti-j784s4-hsm-atf": ("hang", "board", "", "in SPL"),
    "uboot-hang-in-net": ("hang", "board", "", "in U-Boot"),
    "verdin-am62-noinit": ("alarm", "board", "kernel panic", "No working init"),
    "verdin-am62p-prompt": ("hang", "lab", "a prompt of another form waits", ""),
    "verdin-imx8mp-ddr-retry": ("hang", "board", "nothing bootable", ""),
    "verity-corrupt-restart": ("alarm", "board", "silent reset", "verity"),
    "verity-init-fatal": ("alarm", "board", "kernel panic", ""),
    "xu4-ramdisk-crc": ("hang", "board", "an image is refused", ""),
    "zcu111-optee-abort": ("alarm", "board", "OP-TEE panic", ""),
}
"""What, who acts, the cause, and a part of the sentence."""
OWN = {
    "err-line-hang": ("hang", "", "no reason"),
    "err-line-reset": ("alarm", "boot loader stopped", ""),
    "init-env": ("hang", "", "no reason"),
    "reset-then-silence": ("hang", "the board did not start again after its reset", ""),
    "spl-waits-for-ymodem": ("hang", "the loader waits for an image from a host", ""),
    "resume-not-boot": ("hang", "a prompt of another form waits", ""),
    "efi-mute": ("time", "the kernel prints nothing", ""),
    "hung-task-io-wait": ("alarm", "hung task", ""),
    "unsupported-boot-device": ("alarm", "boot loader stopped", "Unsupported Boot Device!"),
    "ab-no-slot": ("alarm", "silent reset", "No valid slot"),
    "dracut-waits": ("time", "the root file system did not appear", "dracut"),
    "verity-damaged": ("time", "a file system is damaged", "verity"),
    "squashfs-damaged": ("time", "a file system is damaged", "SQUASHFS"),
    "initrd-unit-failed": ("time", "a unit of systemd failed", ""),
    "enter-then-shell": ("time", "a shell without a login waits", ""),
    "firmware-loop": ("hang", "boot loader in a loop", ""),
    "optee-debug-hang": ("hang", "", "in OP-TEE"),
    "old-trouble-quoted": ("time", "the system runs and gives no login", "login (check"),
    "android-device-prompt": ("booted", "", ""),
}
"""What, the cause, and a part of the sentence."""


def rows(file):
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8") as lines:
        return {row["name"]: row for row in csv.DictReader(lines, delimiter="\t")}


def told(folder, row):
    return verdict(third.BEFORE[row["begins at"]] + recorded(folder / f"{row['name']}.txt").text)


@pytest.mark.parametrize("name", rows(CONSOLES / "truth.tsv"))
def test_a_console_has_the_verdict_of_a_person(name):
    row = rows(CONSOLES / "truth.tsv")[name]
    found = told(CONSOLES, row)
    if name in NO_LOGIN:
        assert (found.kind, found.cause) == ("lab", NO_LOGIN[name]), found
    elif row["healthy"] == "yes":
        assert found.what == "booted", found
    else:
        *wanted, says = FAILED[name]
        assert [found.what, found.kind, found.cause] == wanted, found
        assert says in found.says


@pytest.mark.parametrize("name", rows(SMALL / "cases.tsv"))
def test_a_small_input_is_named(name):
    found = told(SMALL, rows(SMALL / "cases.tsv")[name])
    what, cause, says = OWN[name]
    assert found.what == what, found
    assert found.cause.startswith(cause)
    assert bool(found.cause) == bool(cause)
    assert says in found.says
    assert "Err: " not in found.says


@pytest.mark.parametrize("folder", [third.CONSOLES, CONSOLES])
def test_no_line_of_a_healthy_boot_loader_is_trouble(folder):
    trouble, benign = signs.telling("trouble"), signs.telling("benign")
    for row in rows(folder / "truth.tsv").values():
        if row["healthy"] != "yes":
            continue
        text = signs.plain(recorded(folder / f"{row['name']}.txt").text.decode("utf-8", "replace"))
        kernel = signs.telling("start").search(text)
        end = kernel.start() if kernel else len(text) * (row["begins at"] in ("power", "uboot"))
        quoted = [line for line in text[:end].split("\n") if trouble.search(line) and not benign.search(line)]
        assert not quoted, row["name"]
