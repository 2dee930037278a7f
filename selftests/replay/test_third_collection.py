"""The third collection of real consoles, which lies beside this checkout, and what evmperf makes of each text
beside a person's verdicts in truth.tsv.
"""

from __future__ import annotations

import csv

import pytest

from selftests.replay import texts
from selftests.support import seeds
from selftests.support.consoles import verdict
from selftests.support.replayboard import recorded

CONSOLES = seeds.place("real/consoles-3")
pytestmark = seeds.needs("real/consoles-3")
BEFORE = {
    "power": b"",
    "uboot": texts.LOADER,
    "linux": texts.LOADER + texts.kernel(),
    "linux0": texts.LOADER + b"\r\nStarting kernel ...\r\n\r\n",
}
WITHOUT_LOGIN = {"ok-juno-shell": "root@", "ok-juniper-busybox-shell": "/ #"}
"""Healthy, with a shell at once: evmperf cannot know, and offers the setting."""
FAILED = {
    "am3352-reset-in-load": ("alarm", "board", "silent reset", "after 'reading"),
    "am3352-startkernel-hang": ("time", "board", "the kernel prints nothing", "device tree to use"),
    "am3358-bbb-nokernel": ("hang", "board", "the medium has no such partition", "Unrecognized"),
    "am5728-qspi-probe": ("alarm", "board", "boot loader stopped", "Invalid bus"),
    "am572x-waitroot": ("time", "board", "the kernel cannot initialise the card", "-110"),
    "am6234-stuck-spl": ("hang", "board", "the SPL stops where it first uses the DDR memory", "in SPL"),
    "am6251-dfu-auth-joined": ("alarm", "board", "image refused", ""),
    "am62a-msgnotack-auth": ("alarm", "board", "image refused", ""),
    "am62a-nopart-bootflow": ("hang", "board", "the medium has no such partition", ""),
    "am62a7-stuck-spl": ("hang", "board", "the SPL stops where it first uses the DDR memory", "in SPL"),
    "am64b-sd110": ("time", "board", "the kernel cannot initialise the card", "-110"),
    "am654-sysfw-part": ("alarm", "board", "boot loader stopped", "sysfw.itb"),
    "am6548-ospi-mmcbusy": ("hang", "board", "the medium cannot be read", "busy timeout"),
    "ast2600-emergency-target": ("alarm", "board", "emergency mode", ""),
    "barreleye-welcome-emergency": ("alarm", "board", "emergency mode", "to view"),
    "bbb-a5a-cccc": ("alarm", "board", "nothing bootable", ""),
    "bbplay-sd-nocard": ("alarm", "board", "boot loader stopped", "mmc init failed"),
    "bela-journal-rootfail": ("time", "board", "a file system is damaged", "journal"),
    "bf527-nfs-panic-unstamped": ("alarm", "lab", "the root file system cannot be mounted over NFS", ""),
    "dm355-ubl-nand": ("hang", "board", "boot loader in a loop", "NANDBoot"),
    "dm6467-nfs-port": ("time", "lab", "the NFS server does not answer", ""),
    "dra821-bl31-abort": ("alarm", "board", "TF-A panic", ""),
    "dra829-spl-handover": ("hang", "board", "", "in the SPL after TF-A"),
    "hummingboard-nomedium": ("hang", "lab", "there is no medium", ""),
    "imx-panic-reboots": ("alarm", "board", "kernel panic", ""),
    "imx28-restart-hang": ("hang", "board", "the board did not start again after its reset by software", ""),
    "imx8mm-optee-hang": ("hang", "board", "", "in TF-A"),
    "j721e-a72spl-jedec": ("alarm", "board", "boot loader stopped", "JEDEC"),
    "linino-garbled": ("hang", "lab", "the console is garbled", ""),
    "lubancat5-initramfs": ("alarm", "board", "emergency mode", "PARTUUID"),
    "myir-wdog-reset": ("alarm", "board", "silent reset", ""),
    # Its countdown has no text: to evmperf that is autoboot that cannot be stopped.
    "nerves-erlinit-hang": ("alarm", "lab", "autoboot was not stopped", ""),
    "nvidia-mb1": ("hang", "board", "boot loader in a loop", ""),
    "odroidc1-resize-job": ("time", "board", "a start job of systemd has not ended", ""),
    "olimex-bl31-assert": ("alarm", "board", "TF-A assertion failed", "xlat_tables_core.c"),
    "r528-tiny-cut": ("time", "board", "the system runs and gives no login", ""),
    "rk3188-barebox": ("alarm", "lab", "the boot loader is barebox, not U-Boot", ""),
    "rk3288-hungtask": ("alarm", "board", "hung task", ""),
    "rpi-nard-noinit": ("alarm", "board", "kernel panic", "No init"),
    "rpi2-hungtask": ("alarm", "board", "hung task", ""),
    "rpi4-ubuntu-initramfs": ("alarm", "board", "emergency mode", "LABEL=writable"),
    "rpi5-mender-rootvar": ("time", "board", "the root file system did not appear", "mender_kernel_root"),
    "shield96-garbled-uboot": ("alarm", "lab", "the console is garbled", ""),
    "star64-bootarg-overflow": ("hang", "board", "the kernel's arguments are too long for U-Boot", "265"),
    "star64-no-image": ("hang", "board", "nothing bootable", "any image"),
    "steelix-init-killed-midline": ("alarm", "board", "kernel panic", "kill init"),
    "stm32mp157-bl2-load": ("hang", "board", "the medium cannot be read", "-80"),
    "stm32mp157-startkernel-hang": ("time", "board", "the kernel prints nothing", "nothing (check"),
    "stm32mp257-optee-working": ("alarm", "board", "OP-TEE panic", ""),
    "talos-hungtask-caller": ("alarm", "board", "hung task", ""),
    "tda4vm-sbl-ddr": ("hang", "board", "the memory does not start", "LPDDR4"),
    "tda4vm-tispl-fat": ("alarm", "board", "boot loader stopped", "tispl.bin"),
    "uboot2016-mute": ("time", "board", "the kernel prints nothing", ""),
    "verdin-imx8mm-sdp": ("alarm", "board", "boot loader stopped", "from all boot devices"),
    "vf2-nomorebootdevs": ("alarm", "board", "nothing bootable", "bootdevs: no medium"),
}
"""What, who acts, the cause, and a part of the sentence."""


def truths():
    if not CONSOLES.is_dir():
        return {}
    with (CONSOLES / "truth.tsv").open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}


@pytest.mark.parametrize("name", truths())
def test_a_console_has_the_verdict_of_a_person(name):
    row = truths()[name]
    found = verdict(BEFORE[row["begins at"]] + recorded(CONSOLES / f"{name}.txt").text)
    if name in WITHOUT_LOGIN:
        assert (found.what, found.cause) == ("time", "a shell without a login waits"), found
        assert f"'{WITHOUT_LOGIN[name]}" in found.says
    elif row["healthy"] == "yes":
        assert found.what == "booted", found
    else:
        what, kind, cause, says = FAILED[name]
        assert (found.what, found.kind) == (what, kind), found
        assert found.cause.startswith(cause)
        assert says in found.says
        assert cause or found.cause == ""
