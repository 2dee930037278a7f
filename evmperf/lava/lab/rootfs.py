"""The root file system of the LAVA lab: Debian 12 with LAVA's packages, configured in a chroot (which
`virtual.debian` does not do), built once and cached.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from evmperf.lava import paths
from evmperf.model.errors import LabError
from evmperf.runs import folders as caches
from evmperf.virtual.debian import mirror
from evmperf.virtual.steps import BuildSteps

SUITE = "bookworm"
"""The only suite of Debian that has LAVA's server."""

_NAMES = """
    lava-server lava-dispatcher lavacli openssh-server socat curl dnsmasq-base tftpd-hpa u-boot-tools
"""
_PACKAGES = _NAMES.split()

# lava-server's own installation makes its database, so PostgreSQL has to run meanwhile: in a
# network of its own, where its port disturbs nobody.
_INSTALL = """\
set -eu
mount --make-rprivate /
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
mount -t tmpfs tmpfs "$0/run"
ip link set lo up
chroot "$0" install -d -o postgres -g postgres /run/postgresql
chroot "$0" pg_ctlcluster 15 main start
chroot "$0" apt-get -qy --no-download install "$@"
chroot "$0" pg_ctlcluster 15 main stop
"""


def build(progress: Callable[[str], None]) -> Path:
    """The root file system's folder, built once (about three minutes, 1.7 GB). Raises LabError."""
    if os.geteuid() != 0:
        raise LabError("the LAVA lab runs in a chroot: start it as root")
    recipe = hashlib.sha256("\n".join((SUITE, *_PACKAGES, _INSTALL)).encode()).hexdigest()[:12]
    folder = caches.cache_dir() / "lava"
    final = folder / f"rootfs-{recipe}"
    steps = BuildSteps(folder / "logs", progress)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            work = folder / "rootfs.new"
            shutil.rmtree(work, ignore_errors=True)
            with steps.step("LAVA's root file system"):
                _make(work, steps)
            work.rename(final)
            for old in folder.glob("rootfs-*"):
                if old != final:
                    shutil.rmtree(old, ignore_errors=True)
    return final


def _make(target: Path, steps: BuildSteps) -> None:
    if not shutil.which("mmdebstrap"):
        raise LabError(f"mmdebstrap is missing: `make lava-lab` installs what {paths.HOST_PACKAGES} lists")
    command: list[str | Path] = ["mmdebstrap", "--variant=minbase", "--include=postgresql"]
    # The package lists stay, for the packages that follow.
    command += ["--skip=cleanup/apt/lists", SUITE, target, mirror(steps)]
    steps.run(command, "Making a Debian system", "lava-rootfs")
    # No service may start while packages are installed.
    policy = target / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    (target / "etc/apt/apt.conf.d/99evmperf").write_text('APT::Install-Recommends "false";\n')
    resolver = target / "etc/resolv.conf"
    resolver.unlink(missing_ok=True)
    shutil.copyfile("/etc/resolv.conf", resolver)
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    download: list[str | Path] = ["chroot", target, "apt-get", "-qy", "--download-only"]
    steps.run([*download, "install", *_PACKAGES], "Downloading LAVA", "lava-rootfs", env=quiet)
    alone = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", _INSTALL]
    steps.run([*alone, target, *_PACKAGES], "Installing LAVA", "lava-rootfs", env=quiet)
    steps.run(["chroot", target, "apt-get", "clean"], "Tidying up", "lava-rootfs")
