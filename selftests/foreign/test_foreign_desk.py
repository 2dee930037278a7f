"""A board that nobody here made, at the desk: found at its boot loader, booted and measured."""

import contextlib
import hashlib
import json
import lzma
import os
import pty
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import tty
from pathlib import Path

import pytest
from evmperf_virtual import image
from evmperf_virtual.debian import DebianArchive
from evmperf_virtual.image import partition
from evmperf_virtual.rootfs import cpio
from evmperf_virtual.steps import BuildSteps, make_ext4, tool

from evmperf.measure.runs import folders
from evmperf.model.errors import LabError
from selftests.support import programs

SUITE = "trixie"
PACKAGES = ["u-boot-sunxi", "linux-image-armmp", "busybox-static", "dropbear-bin", "openssl", "fdisk"]
KEPT = (*PACKAGES[:1], "linux-image-6", "busybox", *PACKAGES[3:], "libc6", "libssl3t64")
LIBRARIES = ("libfdisk1", "libsmartcols1", "libblkid1", "libuuid1", "libreadline8t64", "libtinfo6")
LIBRARIES += ("libtomcrypt1", "libtommath1", "libcrypt1", "zlib1g", "libzstd1", "libgcc-s1", "libgmp10")
MODULES = ["sunxi-mmc", "crc32c_generic", "ext4", "sunxi_wdt", "realtek", "dwmac-sun8i"]
SPL = "usr/lib/u-boot/orangepi_pc_plus/u-boot-sunxi-with-spl.bin"
CARD_MIB, ROOT_MIB, ROOT_AT_MIB = 256, 160, 4
APPEND = "console=ttyS0,115200 root=/dev/mmcblk0p1 rw ${optargs}"

INIT = """\
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in /modules/*; do insmod $m; done
init=/sbin/init
for word in $(cat /proc/cmdline); do
  case $word in root=*) root=${word#root=};; init=*) init=${word#init=};; esac
done
echo "Begin: Waiting for root file system ..."
until [ -b $root ] && mount -t ext4 $root /root; do sleep 1; done
umount /proc /sys
mount -o move /dev /root/dev
exec switch_root /root $init
"""
_RCS = """\
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox --install -s
mount -t tmpfs tmp /tmp; mkdir -p /dev/pts; mount -t devpts pts /dev/pts
hostname orangepipc
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0
dropbear -R
[ -x /etc/slow ] && /etc/slow
true
"""
_FILES = {
    "etc/inittab": (
        "::sysinit:/etc/init.d/rcS\nttyS0::respawn:/sbin/getty -L 115200 ttyS0 vt100\n"
        "::shutdown:/bin/umount -a -r\n"
    ),
    "etc/init.d/rcS": _RCS,
    "etc/passwd": "root::0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shells": "/bin/sh\n",
    "etc/os-release": 'PRETTY_NAME="a tiny busybox"\nID=tiny\nVERSION_ID=13\n',
}


MACHINE = ("-M", "orangepi-pc", "-m", "1G", "-audio", "none", "-global", "cortex-a7-arm-cpu.cntfrq=24000000")


def card() -> Path:
    """The card, made if the cache does not have it; raises LabError where it cannot be made."""
    said = (SUITE, PACKAGES, KEPT, LIBRARIES, MODULES, APPEND, INIT, _FILES, CARD_MIB, ROOT_MIB)
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:12]
    folder = folders.cache_dir() / "foreign" / f"orangepi-{digest}"
    file = folder / "card.img"
    if not file.is_file():
        new = folder.with_name(f".{folder.name}.{os.getpid()}")
        try:
            _build(new)
            with contextlib.suppress(OSError):  # somebody else was faster
                new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return file


def _packages(steps: BuildSteps, folder: Path) -> Path:
    """The packages that are needed, unpacked."""
    with (
        steps.step(f"orangepi-pc's software from Debian {SUITE}"),
        DebianArchive(steps, folder / "apt", SUITE, "armhf") as archive,
    ):
        chosen = archive.resolve(PACKAGES, [])
        wanted = [p for p in chosen if p.name.startswith((*KEPT, *LIBRARIES))]
        archive.unpack(wanted, folder / "packages")
    return folder / "packages"


def _build(folder: Path) -> None:
    folder.mkdir(parents=True)
    steps = BuildSteps(folder.parent / "logs", print)
    packages = _packages(steps, folder)
    root = folder / "root"
    for name in (
        "bin",
        "sbin",
        "dev",
        "proc",
        "sys",
        "tmp",
        "root/.ssh",
        "usr/bin",
        "usr/sbin",
        "boot/extlinux",
    ):
        (root / name).mkdir(parents=True)
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "etc/init.d/rcS").chmod(0o755)
    shutil.copy(packages / "usr/bin/busybox", root / "bin/busybox")
    for name in ("bin/sh", "sbin/init", "sbin/getty"):
        (root / name).symlink_to("/bin/busybox")
    shutil.copy(packages / "usr/bin/openssl", root / "usr/bin/openssl")
    for name in ("dropbear", "sfdisk"):
        shutil.copy(packages / "usr/sbin" / name, root / "usr/sbin" / name)
    (root / "etc/dropbear").mkdir()
    (root / "usr/lib").mkdir()
    shutil.copytree(
        packages / "usr/lib/arm-linux-gnueabihf", root / "usr/lib", symlinks=True, dirs_exist_ok=True
    )
    for waste in ("gconv", "ossl-modules", "engines-3"):
        shutil.rmtree(root / "usr/lib" / waste, ignore_errors=True)
    (root / "lib").symlink_to("usr/lib")
    _kernel(steps, packages, root / "boot")
    (root / "boot/extlinux/extlinux.conf").write_text(
        "timeout 1\ndefault tiny\nlabel tiny\n  linux /boot/vmlinuz\n  initrd /boot/initrd.img\n"
        f"  fdt /boot/sun8i-h3-orangepi-pc.dtb\n  append {APPEND}\n"
    )
    disk = folder / "card.img"
    with disk.open("wb") as file:
        file.truncate(CARD_MIB << 20)
    lines = ["label: dos", f"start={ROOT_AT_MIB}MiB, size={ROOT_MIB}MiB, type=83, bootable"]
    partition(steps, disk, lines)
    make_ext4(
        steps,
        disk,
        root,
        start_mib=ROOT_AT_MIB,
        mib=ROOT_MIB,
        label="tiny",
        uuid="6b8c51d2-93c0-4d6e-8f0a-0f6f3f2f7c11",
    )
    with disk.open("r+b") as file:
        file.seek(8 << 10)
        file.write((packages / SPL).read_bytes())
    shutil.rmtree(packages)
    shutil.rmtree(root)


def _kernel(steps: BuildSteps, packages: Path, boot: Path) -> None:
    """Put kernel, device tree and an initrd into a folder, from unpacked packages; modules that are built in
    are passed over.
    """
    (kernel,) = (packages / "boot").glob("vmlinuz-*")
    release = kernel.name.removeprefix("vmlinuz-")
    shutil.copy(kernel, boot / "vmlinuz")
    (tree,) = packages.glob("usr/lib/linux-image-*/sun8i-h3-orangepi-pc.dtb")
    shutil.copy(tree, boot)
    steps.run([tool("depmod"), "-b", packages / "usr", release], "Indexing modules", "foreign")
    names = ("bin", "dev", "proc", "sys", "root", "modules")
    files = [(name, stat.S_IFDIR | 0o755, b"") for name in names]
    files.append(("bin/busybox", stat.S_IFREG | 0o755, (packages / "usr/bin/busybox").read_bytes()))
    for name in ("sh", "mount", "umount", "insmod", "cat", "sleep", "switch_root"):
        files.append((f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox"))
    files.append(("init", stat.S_IFREG | 0o755, INIT.encode()))
    for number, module in enumerate(_closure(packages / "usr/lib/modules" / release)):
        data = module.read_bytes()
        data = lzma.decompress(data) if module.suffix == ".xz" else data
        name = f"modules/{number:02}-{module.name.removesuffix('.xz')}"
        files.append((name, stat.S_IFREG | 0o644, data))
    (boot / "initrd.img").write_bytes(cpio(files))


def _closure(folder: Path) -> list[Path]:
    """MODULES and what they need, in loading order."""
    lines = [line.partition(":") for line in (folder / "modules.dep").read_text().splitlines()]
    needs = {path: rest.split() for path, _, rest in lines}
    order: dict[str, None] = {}
    for path in (p for name in MODULES for p in needs if Path(p).name.startswith(f"{name}.ko")):
        order |= dict.fromkeys([*reversed(needs[path]), path])
    return [folder / path for path in order]


class ForeignBoard:
    """The board, off, with a copy of a card; `path` is its serial port, `said` what came from it since
    the last power-on.
    """

    def __init__(self, folder: Path, original: Path) -> None:
        self.said = b""
        self._card = folder / "card.img"
        subprocess.run(["cp", "--sparse=always", original, self._card], check=True)
        self._log = (folder / "qemu.log").open("wb")
        self._qemu: subprocess.Popen[bytes] | None = None
        self._leader, self._follower = pty.openpty()
        tty.setraw(self._follower)
        os.set_blocking(self._leader, False)
        self.path = os.ttyname(self._follower)
        self._wire = folder / "uart"
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self._wire))
        self._server.listen()
        self._client: socket.socket | None = None
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether its QEMU runs."""
        return self._qemu is not None and self._qemu.poll() is None

    def switch(self, on: bool) -> None:
        """Take its power away or give it: what a person does."""
        if not on or self.is_on:
            self._off()
        if on:
            self._on()

    def wait_for(self, said: bytes, within_s: float = 900.0) -> None:
        """Wait until it has said that; systemd takes minutes on emulated cores beside other tests."""
        deadline = time.monotonic() + within_s
        while said not in self.said:
            assert time.monotonic() < deadline, self.said[-2000:]
            time.sleep(0.1)

    def stop_at(self, prompt: bytes) -> None:
        """Stop U-Boot's countdown at its prompt."""
        self.wait_for(b"stop autoboot")
        with Path(self.path).open("wb", buffering=0) as keys:
            while prompt not in self.said:  # a space more may follow it
                keys.write(b" ")
                time.sleep(0.2)

    def close(self) -> None:
        """Switch it off for good."""
        self._off()
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._server.close()
        for end in (self._leader, self._follower):
            os.close(end)
        self._log.close()

    def _on(self) -> None:
        self.said = b""
        qemu = image.load("virtual").qemu
        command = [*qemu.command, "-nographic", "-monitor", "none"]
        command += [*MACHINE, "-chardev", f"socket,id=uart,path={self._wire}", "-serial", "chardev:uart"]
        command += ["-nic", "user,model=allwinner-sun8i-emac,restrict=on"]
        command += ["-drive", f"if=sd,format=raw,file={self._card}"]
        self._qemu = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **qemu.env},
            start_new_session=True,
        )

    def _off(self) -> None:
        if self._qemu:
            self._qemu.send_signal(signal.SIGKILL)
            self._qemu.wait()
            self._qemu = None

    def _carry(self) -> None:
        """Bytes between the terminal and whichever QEMU is there; a UART keeps none of them."""
        with contextlib.suppress(OSError):
            while True:
                ends = [self._server, self._leader, *([self._client] if self._client else [])]
                for end in select.select(ends, [], [])[0]:
                    if end is self._server:
                        self._client, _ = self._server.accept()
                    elif end is self._client:
                        self._from_board()
                    elif (typed := os.read(self._leader, 4096)) and self._client:
                        with contextlib.suppress(OSError):
                            self._client.sendall(typed)

    def _from_board(self) -> None:
        assert self._client
        data = b""
        with contextlib.suppress(OSError):
            data = self._client.recv(4096)
        if not data:
            self._client.close()
            self._client = None
        self.said += data
        with contextlib.suppress(BlockingIOError):
            os.write(self._leader, data)


def card_or_skip() -> Path:
    """The card; skips the test where neither cache nor network brings it."""
    try:
        image.load("virtual")  # whose QEMU it is
        return card()
    except LabError as error:
        pytest.skip(f"no foreign board here: {error}")


pytestmark = pytest.mark.virtual_evm


@pytest.fixture
def board(tmp_path):
    """A board with a card of its own, off."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    board = ForeignBoard(folder, card_or_skip())
    yield board
    board.close()


def desk(board, results, *more):
    command = [sys.executable, "-m", "evmperf", "desk", "--port", board.path, "--results", str(results)]
    return programs.run(*command, *more)


def test_it_is_found_at_its_boot_loader_booted_and_measured(board, tmp_path):
    board.switch(True)
    board.stop_at(b"=> ")
    assert "is at U-Boot's prompt" in desk(board, tmp_path).stderr
    words = ["--boot", "--yes", "-k", "openssl_throughput and aes-128-cbc and 16384"]
    found = desk(board, tmp_path, *words)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Orange Pi PC" in found.stdout
    (run,) = tmp_path.glob("*/run.json")
    lines = map(json.loads, (run.parent / "results.jsonl").read_text().splitlines())
    # Not the control figures, which a session measures beside what was asked for.
    measured = [line for line in lines if line.get("benchmark") and line.get("driver") != "control"]
    assert [line["status"] for line in measured] == ["measured"]
