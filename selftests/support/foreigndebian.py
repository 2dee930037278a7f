"""Boards that nobody here made, with a whole Debian: systemd, PAM, dash and Debian's arm64 kernel.

The card is built once from Debian's packages, unpacked without maintainer scripts, and kept in the cache.
A Raspberry Pi 3 boots it by Debian's U-Boot, an i.MX 8M Plus EVK by QEMU's own loader, as it has no boot ROM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from evmperf_virtual import image
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.image import partition
from evmperf_virtual.steps import BuildSteps, make_ext4

from evmperf.measure.runs import folders
from evmperf.model.errors import LabError
from selftests.support import foreignboard
from selftests.support.foreignboard import Model

PACKAGES = ["systemd-sysv", "udev", "dbus", "login", "openssl", "dropbear-bin", "busybox-static", "iproute2"]
PACKAGES += ["procps", "kmod", "sudo", "base-files", "base-passwd", "coreutils", "dash", "util-linux", "mawk"]
PACKAGES += ["grep", "sed", "tar", "gzip", "hostname", "mount", "libpam-modules", "findutils", "ncurses-base"]
PACKAGES += ["linux-image-arm64", "u-boot-rpi"]
LEAVE_OUT = [
    "initramfs-tools*",
    "dracut*",
    "linux-base",
    "gpgv",
    "debian-archive-keyring",
    "perl*",
    "libperl*",
]
MODULES = ["bcm2835", "sdhci-iproc", "ext4", "sdhci-esdhc-imx", "clk-imx8mp", "pinctrl-imx8mp"]
MODULES += [
    "pca9450-regulator",
    "i2c-imx",
    "gpio-mxc",
    "fixed",
    "nvmem-imx-ocotp",
    "fec",
    "imx-sdma",
    "crc32c_generic",
]
TREES = ("broadcom/bcm2837-rpi-3-b.dtb", "freescale/imx8mp-evk.dtb")
CARD_MIB, ROOT_MIB = 1024, 700
"""QEMU's cards have a power of two."""

_APPEND = "rw net.ifnames=0 systemd.default_device_timeout_sec=900"
"""Emulated beside other tests, udev needs longer than systemd waits for the console by itself."""

PI = Model(
    "raspi3b",
    ("-M", "raspi3b", "-kernel", "{folder}/u-boot.bin", "-dtb", "{folder}/bcm2837-rpi-3-b.dtb"),
    serial=("null", "chardev:uart"),
)
IMX = Model(
    "imx8mp-evk",
    (
        *("-M", "imx8mp-evk", "-smp", "2", "-m", "1G", "-kernel", "{folder}/vmlinuz"),
        *("-initrd", "{folder}/initrd.img", "-dtb", "{folder}/imx8mp-evk.dtb"),
        *("-append", f"console=ttymxc1,115200 root=/dev/mmcblk2p1 {_APPEND}"),
    ),
    serial=("null", "chardev:uart"),
    nic="user,model=imx.enet",
    card="if=sd,bus=2",
)
_EXTLINUX = f"""\
timeout 1
default debian
label debian
  linux /boot/vmlinuz
  initrd /boot/initrd.img
  append console=ttyS1,115200 root=/dev/mmcblk0p1 {_APPEND}
"""
_NETWORK = """\
[Unit]
Description=The network of QEMU and a server of SSH
[Service]
ExecStart=/bin/sh -c 'ip link set eth0 up; ip address add 10.0.2.15/24 dev eth0; exec dropbear -F -R -E'
[Install]
WantedBy=multi-user.target
"""
_PAM = {
    "auth": "pam_unix.so nullok",
    "account": "pam_unix.so",
    "session": "pam_unix.so",
    "password": "pam_unix.so",
}
_FILES = {
    "etc/hostname": "foreign\n",
    "etc/machine-id": "6b8c51d293c04d6e8f0a0f6f3f2f7c13\n",
    "etc/fstab": "",
    "etc/.updated": "",
    "var/.updated": "",
    "etc/shells": "/bin/sh\n",
    "etc/sudoers.d/debian": "debian ALL=(ALL) NOPASSWD: ALL\n",
    "etc/systemd/journald.conf.d/none.conf": "[Journal]\nStorage=none\n",
    "etc/systemd/system/ssh.service": _NETWORK,
    **{f"etc/pam.d/common-{kind}": f"{kind} required {module}\n" for kind, module in _PAM.items()},
    "etc/pam.d/common-session-noninteractive": "session required pam_unix.so\n",
    "boot/extlinux/extlinux.conf": _EXTLINUX,
}
_MASKED = (
    "ldconfig",
    "systemd-hwdb-update",
    "systemd-journal-catalog-update",
    "systemd-pcrlock",
    "e2scrub_reap",
)


def card() -> Path:
    """The card, its folder beside it has what QEMU loads; raises LabError where it cannot be made."""
    said = (PACKAGES, LEAVE_OUT, MODULES, TREES, CARD_MIB, ROOT_MIB, _FILES, _MASKED, foreignboard.INIT)
    folder = folders.cache_dir() / "foreign" / f"debian-{foreignboard.digest(said)}"
    if not (folder / "card.img").is_file():
        new = folder.with_name(f".{folder.name}.{os.getpid()}")
        try:
            _build(new)
            with contextlib.suppress(OSError):  # somebody else was faster
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder / "card.img"


def _build(folder: Path) -> None:
    folder.mkdir(parents=True)
    steps = BuildSteps(folder.parent / "logs", print)
    root = folder / "root"
    with (
        steps.step("A whole Debian for foreign boards"),
        DebianArchive(steps, folder / "apt", foreignboard.SUITE, "arm64") as archive,
    ):
        archive.unpack(archive.resolve(PACKAGES, LEAVE_OUT), root)
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "etc/sudoers.d/debian").chmod(0o440)
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / f"etc/{name}")
    with (root / "etc/passwd").open("a") as file:
        file.write(
            "debian::1000:1000::/home/debian:/bin/sh\nmessagebus:x:100:100::/nonexistent:/usr/sbin/nologin\n"
        )
    text = (root / "etc/passwd").read_text().replace("root:*:", "root::").replace("/bin/bash", "/bin/sh")
    (root / "etc/passwd").write_text(text)
    with (root / "etc/group").open("a") as file:
        file.write("debian:x:1000:\nmessagebus:x:100:\n")
    for name in ("root/.ssh", "home/debian", "etc/dropbear"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for link, target in (("usr/bin/awk", "mawk"), ("usr/bin/sh", "dash")):
        if not (root / link).is_symlink():
            (root / link).symlink_to(target)
    units = root / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/ssh.service").symlink_to("../ssh.service")
    for name in _MASKED:
        (units / f"{name}.service").symlink_to("/dev/null")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    foreignboard.kernel(steps, root, root / "boot", MODULES, TREES)
    for name in ("vmlinuz", "initrd.img", *(Path(tree).name for tree in TREES)):
        shutil.copy(root / "boot" / name, folder)
    shutil.copy(root / "usr/lib/u-boot/rpi_3/u-boot.bin", folder)
    for waste in (
        "usr/lib/modules",
        "usr/lib/linux-image-*",
        "usr/share/doc",
        "usr/share/locale",
        "usr/lib/u-boot",
    ):
        for path in root.glob(waste):
            shutil.rmtree(path)
    for path in root.glob("boot/*-arm64"):
        path.unlink()
    disk = folder / "card.img"
    with disk.open("wb") as file:
        file.truncate(CARD_MIB << 20)
    at = foreignboard.ROOT_AT_MIB
    partition(steps, disk, ["label: dos", f"start={at}MiB, size={ROOT_MIB}MiB, type=83, bootable"])
    make_ext4(
        steps,
        disk,
        root,
        start_mib=at,
        mib=ROOT_MIB,
        label="debian",
        uuid="6b8c51d2-93c0-4d6e-8f0a-0f6f3f2f7c12",
    )
    shutil.rmtree(root)


def card_or_skip() -> Path:
    """The card; skips the test where neither cache nor network brings it."""
    try:
        image.load("virtual")  # whose QEMU it is
        return card()
    except LabError as error:
        pytest.skip(f"no foreign Debian here: {error}")
