"""A whole LAVA on this machine: server, worker, a lab host and a virtual EVM, on loopback only. Its root
file system is Debian 12 with LAVA's packages, configured in a chroot (which `virtual.debian` does not do),
built once and cached.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import requests

from evmperf.lava import paths
from evmperf.model.environment import for_children
from evmperf.model.errors import LabError
from evmperf.runs import folders
from evmperf.virtual import board as boards
from evmperf.virtual import envfile, image
from evmperf.virtual.client import LabClient
from evmperf.virtual.debian import mirror
from evmperf.virtual.steps import BuildSteps

NATIVE, HOST = "lava-native", "lava-host"
"""The lab's two virtual boards, LAVA's own and the lab host's: two jobs must not meet on one."""

_START_S = 180.0
_STOP_S = 20.0

# In namespaces of its own: changes to the root file system are in memory and gone with it.
_ENTER = """\
set -eu
rootfs=$1 lab=$2
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$lab/mnt"
mkdir "$lab/mnt/upper" "$lab/mnt/work" "$lab/mnt/root"
root=$lab/mnt/root
mount -t overlay -o "lowerdir=$rootfs,upperdir=$lab/mnt/upper,workdir=$lab/mnt/work" lava "$root"
mkdir "$root/host" "$root/lab"
mount --rbind / "$root/host"
mount -t proc proc "$root/host/proc"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/run"
mount --bind "$lab/shared" "$root/lab"
mount --bind "$lab/log" "$root/var/log"
mkdir -p "$lab/log/lava-server" "$lab/log/postgresql"
chroot "$root" chown lavaserver:adm /var/log/lava-server
chroot "$root" chown postgres:adm /var/log/postgresql
exec chroot "$root" /lab/init
"""

# What LAVA's flasher calls. The image is in LAVA's own root file system, at a relative path, and
# the card is this machine's: so evmperf runs here, in the folder that both have.
_EVMPERF = """\
#!/bin/sh
exec chroot /host env --chdir="{root}$PWD" {python} -m evmperf "$@"
"""

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


@dataclass(frozen=True)
class Lab:
    """A running lab: the process that all of it lives in, and where its server is."""

    pid: int
    pid_started: int
    url: str

    @property
    def token(self) -> str:
        """The token of the lab's own user; raises LabError when it is gone."""
        try:
            return (paths.lab_state() / "shared/token").read_text().strip()
        except OSError as error:
            raise LabError(
                f"the LAVA lab's token cannot be read: {error.strerror}: restart the lab with "
                f"`evmperf lava lab down` and `evmperf lava lab up`"
            ) from None


def running() -> Lab | None:
    """The lab that runs on this machine for this user, None without one."""
    try:
        lab = Lab(**json.loads((paths.lab_state() / "lab.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return lab if boards.pid_started(lab.pid) == lab.pid_started else None


def up(progress: Callable[[str], None], variant: str = boards.DEFAULT_NAME) -> Lab:
    """Start the lab unless it runs; `variant` is LAVA's own virtual EVM. Raises LabError."""
    found = running()
    if found:
        return found
    system = _root_file_system(progress)
    for name in {boards.DEFAULT_NAME, variant}:
        image.build(name, progress=progress)
    down()
    state = paths.lab_state()
    shutil.rmtree(state, ignore_errors=True)
    for sub in ("mnt", "shared", "log", "boards"):
        (state / sub).mkdir(parents=True)
    progress("Starting two virtual boards, LAVA's server and its worker")
    try:
        ports = _start_boards(state, variant)
        _share(state, ports, variant)
        return _start(system, state, ports, progress)
    except BaseException:
        down()
        raise


def down() -> bool:
    """Stop the lab and its boards; False if none ran."""
    lab = running()
    if lab:
        with contextlib.suppress(ProcessLookupError):
            os.kill(lab.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(lab.pid, 0)  # it may be our own child, which would stay as a zombie
        _wait(lambda: running() is None, _STOP_S, f"the LAVA lab (process {lab.pid}) does not end")
    (paths.lab_state() / "lab.json").unlink(missing_ok=True)
    for name in (NATIVE, HOST):
        LabClient(name).stop()
    return lab is not None


def _start_boards(state: Path, variant: str) -> dict[str, str | int]:
    """Start both benches; what the lab's `init` has to know."""
    for name, kind in ((NATIVE, variant), (HOST, boards.DEFAULT_NAME)):
        LabClient(name).start(kind, serial_port=0, power_port=0)
    host = LabClient(HOST).record
    source, copy = envfile.source(boards.DEFAULT_NAME), state / "boards/virtual.yaml"
    envfile.write(source, copy, serial_port=host.serial_port, power_port=host.power_port)
    tester = LabClient(NATIVE).status().tester
    ports = dict(zip(("HTTP", "EVENTS", "WS", "SSH"), _free_ports(4), strict=True))
    address = tester.nics[0].address if tester else "127.0.0.1"
    network = {"ADDRESS": address, "NETNS": tester.namespace if tester else ""}
    ours = {"HOME": paths.JOBS.parent, "BOARDS": state / "boards", "RESULTS": state / "results"}
    return {**ports, **network, **{f"EVMPERF_{name}": str(folder) for name, folder in ours.items()}}


def _share(state: Path, ports: dict[str, str | int], variant: str) -> None:
    """Put there what is the same folder inside the lab and outside."""
    shared = state / "shared"
    for script in ("init", "register.py"):
        shutil.copy(paths.LAB / script, shared)
    (shared / "ports").write_text(
        "".join(f"{key}={shlex.quote(str(value))}\n" for key, value in ports.items())
    )
    command = shared / "evmperf"
    root, python = state / "mnt/root", shlex.quote(sys.executable)
    command.write_text(_EVMPERF.format(root=root, python=python))
    command.chmod(0o755)
    _write_devices(shared, ports, variant)


def _start(system: Path, state: Path, ports: dict[str, str | int], progress: Callable[[str], None]) -> Lab:
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "sh", "-c", _ENTER, "sh"]
    with (state / "log/lab.log").open("wb") as log:
        process = subprocess.Popen(
            [*enter, system, state],
            env=for_children(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    lab = Lab(process.pid, boards.pid_started(process.pid) or 0, f"http://127.0.0.1:{ports['HTTP']}")
    (state / "lab.json").write_text(json.dumps(asdict(lab)))

    def ready() -> bool:
        if process.poll() is not None:
            last = (state / "log/lab.log").read_text(errors="replace").strip().splitlines()[-3:]
            raise LabError(f"LAVA did not start: {' | '.join(last)}; see {state}/log")
        return _worker_is_there(lab)

    began = time.monotonic()
    _wait(ready, _START_S, f"LAVA does not answer {_START_S:g} s after its start; see {state}/log")
    progress(f"LAVA runs at {lab.url}: {time.monotonic() - began:.1f} s")
    return lab


def _write_devices(shared: Path, ports: dict[str, str | int], variant: str) -> None:
    """The device types of the repository, and one device for each of the lab's boards."""
    shutil.copytree(paths.DEVICE_TYPES, shared / "device-types")
    devices = shared / "devices"
    devices.mkdir()
    native = LabClient(NATIVE).record
    switch = f"http://127.0.0.1:{native.power_port}"
    values = {"serial_port": native.serial_port, "power_url": f"{switch}/power/0"}
    if card := LabClient(NATIVE).status().card_file:
        values |= {"card_url": f"{switch}/card/0", "card_file": card, "evmperf": "/lab/evmperf"}
    (devices / "virtual-01.jinja2").write_text(
        f"{{% extends 'evm-{variant}.jinja2' %}}\n"
        + "".join(f"{{% set {name} = {value!r} %}}\n" for name, value in values.items())
    )
    (devices / "lab-host-01.jinja2").write_text(
        "{% extends 'evm-lab-host.jinja2' %}\n"
        "{% set ssh_host = '127.0.0.1' %}\n"
        f"{{% set ssh_port = {ports['SSH']} %}}\n"
        "{% set ssh_identity_file = '/lab/key' %}\n"
    )


def _worker_is_there(lab: Lab) -> bool:
    try:
        answer = requests.get(
            f"{lab.url}/api/v0.2/workers/lab/", headers={"Authorization": f"Token {lab.token}"}, timeout=5
        )
    except (requests.RequestException, LabError):
        return False
    return answer.ok and answer.json().get("state") == "Online"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _wait(condition: Callable[[], bool], seconds: float, failure: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(failure)
        time.sleep(0.2)


def _root_file_system(progress: Callable[[str], None]) -> Path:
    """The root file system's folder, built once (about three minutes, 1.7 GB). Raises LabError."""
    if os.geteuid() != 0:
        raise LabError("the LAVA lab runs in a chroot: start it as root")
    recipe = hashlib.sha256("\n".join((SUITE, *_PACKAGES, _INSTALL)).encode()).hexdigest()[:12]
    folder = folders.cache_dir() / "lava"
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
