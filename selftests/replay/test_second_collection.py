"""The second collection of real consoles, which lies beside this checkout with a person's verdicts:
what evmperf makes of each text, and those where the board is asked, played to the strategy.
"""

from __future__ import annotations

import pytest

from evmperf.boards.console.marks import Phase
from evmperf.model.errors import Kind
from selftests.support import seeds
from selftests.support.consoles import verdict
from selftests.support.replayboard import Play, recorded, replay

CONSOLES = seeds.place("real/consoles-2")
pytestmark = seeds.needs("real/consoles-2")

ON_NO_CARD = {
    "am62-nfs-wrongroot-form": "root: nfs on /dev/nfs",
    "am62x-ubifs-sdautomount-form": "root: ubifs on ubi0:rootfs",
}
BOOTED = [
    "am62-android-form",
    "am62p-verdin-efi-grub-form",
    "am62x-ok-armbian-first-form",
    "am62x-ok-autologin-form",
    "am62x-ok-fsck-form",
    "am62x-ok-issue-login-form",
    "am62x-ok-msg-after-login-form",
    "am62x-ok-msg-in-login-form",
    "am62x-ok-oldtext-form",
    "am62x-ok-thinlinux-form",
    "am62x-sk-sdk101-ok-form",
    "am6442-sysctrl-recovers-form",
    "bbb-ubuntu1604-1",
    "startjob-ok-form",
    "warn-ok-form",
]
FAILED = {
    "am3517-autoreset-form": ("alarm", "board", "silent reset"),
    "am437x-idk-nocard-form": ("back", "lab", "there is no medium"),
    "am572x-dataabort-form": ("alarm", "board", "U-Boot crashed"),
    "am625-mcu-falcon-1": ("alarm", "lab", "no U-Boot in this boot"),
    "am625-r5-netboot-form": ("alarm", "lab", "no answer from the network"),
    "am625-sr11-ubootHang-form": ("hang", "board", ""),
    "am625sip-bl31hang-form": ("hang", "board", ""),
    "am62x-bootp-form": ("alarm", "lab", "no answer from the network"),
    "am62x-dfu-custom-form": ("hang", "board", "the last sign of trouble is"),
    "am62x-extlinux-menu-form": ("hang", "lab", "a menu waits for a choice"),
    "am62x-sk-emmcuda-form": ("alarm", "board", "boot loader stopped"),
    "am62x-tftp-timeout-form": ("alarm", "lab", "no answer from the network"),
    "am6442-sysctrl-form": ("hang", "board", "the system controller does not start"),
    "am654-ddr-form": ("hang", "board", "the last sign of trouble is"),
    "bbai64-initramfs-form": ("alarm", "board", "emergency mode"),
    "bbai64-xhcireset-form": ("alarm", "board", "silent reset"),
    "bbb-garbled-form": ("hang", "lab", "the console is garbled"),
    "bbb-padded-panic-form": ("alarm", "board", "kernel panic"),
    "beagleplay-nolinuxroot-panic-1": ("alarm", "board", "kernel panic"),
    "busybox-enter-form": ("time", "lab", "the console waits for Enter before it gives a shell"),
    "emergency-cut-form": ("alarm", "board", "emergency mode"),
    "emergency-enter-form": ("alarm", "board", "emergency mode"),
    "emergency-full-form": ("alarm", "board", "emergency mode"),
    "hung-task-then-login-form": ("alarm", "board", "hung task"),
    "init-exited-form": ("alarm", "board", "kernel panic"),
    "j721e-badmagic-form": ("back", "board", "there is no kernel that U-Boot can start"),
    "kexec-or-silentreset-form": ("alarm", "board", "silent reset"),
    "linux-reset-rom-cccc-form": ("alarm", "board", "nothing bootable"),
    "noinit-panic-form": ("alarm", "board", "kernel panic"),
    "oops-arm32-form": ("alarm", "board", "kernel oops"),
    "phycore-am335x-barebox-form": ("alarm", "lab", "the boot loader is barebox, not U-Boot"),
    "rcu-stall-caller-form": ("alarm", "board", "RCU stall"),
    "rootfs-io-error-form": ("time", "board", "a disk failed 42 times"),
    "segv-init-form": ("alarm", "board", "init crashed"),
    "sk-am64b-a53splhang-form": ("hang", "board", ""),
    "sysvinit-fsck-form": ("alarm", "board", "emergency mode"),
    "tda4vh-serror-form": ("alarm", "board", "SError"),
    "tda4vm-rprochang-form": ("hang", "board", "U-Boot hangs while it loads a remote core"),
    "uboot-inflate-reset-form": ("alarm", "board", "silent reset"),
    "wrong-dtb-quiet-form": ("time", "board", "the kernel prints nothing"),
}


def text(name: str) -> bytes:
    return recorded(CONSOLES / f"{name}.txt").text


def test_the_whole_collection_is_judged():
    assert {*BOOTED, *FAILED, *ON_NO_CARD} == {path.stem for path in CONSOLES.glob("*.txt")}


@pytest.mark.parametrize("name", BOOTED)
def test_a_healthy_board_has_booted(name):
    found = verdict(text(name))
    assert found.what == "booted", found
    assert len(found.notes) == (name == "am6442-sysctrl-recovers-form")
    assert found.root in (None, "root: mmcblk1p2 type: SD", "root: mmcblk0p2 type: SD")


@pytest.mark.parametrize("name", FAILED)
def test_a_boot_that_failed_has_its_cause(name):
    what, kind, cause = FAILED[name]
    found = verdict(text(name))
    assert (found.what, found.kind) == (what, kind), found
    assert found.cause.startswith(cause)


@pytest.mark.parametrize("name", ON_NO_CARD)
def test_a_root_that_is_on_no_card_is_refused(name):
    assert verdict(text(name)).root == ON_NO_CARD[name]
    boot = replay(Play(text(name)), "am62x-sk", medium="sd").boot
    assert boot.error is not None
    assert boot.error.kind is Kind.LAB


def test_the_prompt_is_marked_and_not_a_sentence_that_names_it():
    boot = replay(Play(text("am62x-ok-issue-login-form")), "am62x-sk", medium="sd").boot
    assert boot.error is None
    assert boot.marks[Phase.PROMPT].text.strip() == "am62xx-evm login:"


def test_what_android_does_not_say_is_recorded_with_the_boot():
    boot = replay(Play(text("am62-android-form")), "am62x-sk", medium="sd").boot
    assert boot.error is None
    assert any("Android does not report its medium" in note for note in boot.notes)
