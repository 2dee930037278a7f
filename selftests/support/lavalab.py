"""A whole LAVA on this machine: server, worker, a lab host and a virtual EVM, on loopback only. Its root
file system is Debian 12 with LAVA's packages, configured in a chroot (which `virtual.debian` does not do),
built once and cached. `lava-jobs/lab` has its scripts.

    python -m selftests.support.lavalab up [VARIANT]      start it, as root
    python -m selftests.support.lavalab down
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import requests
from evmperf_virtual import board as boards
from evmperf_virtual import envfile, image
from evmperf_virtual.client import LabClient
from evmperf_virtual.debian import mirror
from evmperf_virtual.steps import BuildSteps

from evmperf.commands.lava import devices
from evmperf.commands.lava.render import JOBS
from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE
from evmperf.measure.runs import folders
from evmperf.model.errors import LabError
from evmperf.model.places import for_children
from selftests.support.ports import free_port

NATIVE, HOST = "lava-native", "lava-host"
"""The lab's two virtual boards, LAVA's own and the lab host's: two jobs must not meet on one."""

_START_S = 180.0
_STOP_S = 20.0
_SCRIPTS = JOBS / "lab"
SUITE = "bookworm"
"""The only suite of Debian that has LAVA's server."""


@dataclass(frozen=True)
class Lab:
    """A running lab: the process that all of it lives in, and where its server is."""

    pid: int
    pid_started: int
    url: str

    @property
    def token(self):
        """The token of the lab's own user; raises OSError when it is gone, or not there yet."""
        return (folder() / "shared/token").read_text().strip()


def folder():
    """The folder of the running lab (absolute), which may not exist."""
    return folders.state_dir().absolute() / "lava-lab"


def running():
    """The lab that runs on this machine for this user, None without one."""
    try:
        lab = Lab(**json.loads((folder() / "lab.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return lab if _pid_started(lab.pid) == lab.pid_started else None


def _pid_started(pid):
    """When the process started, in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The command's name is in parentheses and may hold spaces; field 22 is counted after it.
    return int(stat.rpartition(")")[2].split()[19])


def up(progress, variant=boards.DEFAULT_NAME):
    """Start the lab unless it runs; `variant` is LAVA's own virtual EVM. Raises LabError."""
    lab = running()
    if lab:
        return lab
    system = _root_file_system(progress)
    for name in {boards.DEFAULT_NAME, variant}:
        image.build(name, progress=progress)
    down()
    state = folder()
    shutil.rmtree(state, ignore_errors=True)
    for sub in ("mnt", "shared", "log", "boards"):
        (state / sub).mkdir(parents=True)
    progress("Starting two virtual boards, LAVA's server and its worker")
    try:
        for name, kind in ((NATIVE, variant), (HOST, boards.DEFAULT_NAME)):
            LabClient(name).start(kind, serial_port=0, power_port=0)
        ports = _share(state, variant)
        return _start(system, state, ports["HTTP"], progress)
    except BaseException:
        down()
        raise


def down():
    """Stop the lab and its boards; False if none ran."""
    lab = running()
    if lab:
        with contextlib.suppress(ProcessLookupError):
            os.kill(lab.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(lab.pid, 0)  # it may be our own child, which would stay as a zombie
        _wait(lambda: running() is None, _STOP_S, f"the LAVA lab (process {lab.pid}) does not end")
    (folder() / "lab.json").unlink(missing_ok=True)
    for name in (NATIVE, HOST):
        LabClient(name).stop()
    return lab is not None


@contextlib.contextmanager
def started(tmp_path_factory, variant):
    """A lab of a test's own, with a state folder of its own."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(state))
        patch.setenv("XDG_CONFIG_HOME", str(state / "no-config"))
        for name in (URL_VARIABLE, TOKEN_VARIABLE):
            patch.delenv(name, raising=False)
        try:
            yield up(print, variant)
        finally:
            down()


def _share(state, variant):
    """Put there what is the same folder inside the lab and outside; returns what its scripts have to know."""
    shared = state / "shared"
    host = LabClient(HOST).record
    source, copy = envfile.source(boards.DEFAULT_NAME), state / "boards/virtual.yaml"
    envfile.write(source, copy, serial_port=host.serial_port, power_port=host.power_port)
    for script in ("init", "register.py", "evmperf"):
        shutil.copy(_SCRIPTS / script, shared)
    status = LabClient(NATIVE).status()
    ports: dict[str, str | int] = {
        **dict(zip(("HTTP", "EVENTS", "WS", "SSH"), (free_port() for _ in range(4)), strict=True)),
        "ADDRESS": status.tester.nics[0].address if status.tester else "127.0.0.1",
        "NETNS": status.tester.namespace if status.tester else "",
        "EVMPERF_HOME": str(JOBS.parent),
        "EVMPERF_BOARDS": str(copy.parent),
        "EVMPERF_RESULTS": str(state / "results"),
        "ROOT": str(state / "mnt/root"),
        "PYTHON": sys.executable,
    }
    lines = (f"{key}={shlex.quote(str(value))}\n" for key, value in ports.items())
    (shared / "ports").write_text("".join(lines))
    shutil.copytree(devices.DEVICE_TYPES, shared / "device-types")
    (shared / "devices").mkdir()
    native = LabClient(NATIVE).record
    switch = f"http://127.0.0.1:{native.power_port}"
    board: dict[str, str | int] = {"serial_port": native.serial_port, "power_url": f"{switch}/power/0"}
    if status.card_file:
        board |= {"card_url": f"{switch}/card/0", "card_file": status.card_file, "evmperf": "/lab/evmperf"}
    login = {"ssh_host": "127.0.0.1", "ssh_port": ports["SSH"], "ssh_identity_file": "/lab/key"}
    for name, base, values in (("virtual", f"evm-{variant}", board), ("lab-host", "evm-lab-host", login)):
        text = devices.template(f"{name} of the LAVA lab", base, values)
        (shared / f"devices/{name}-01.jinja2").write_text(text)
    return ports


def _start(system, state, port, progress):
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"]
    with (state / "log/lab.log").open("wb") as log:
        process = subprocess.Popen(
            [*alone, "sh", _SCRIPTS / "enter", system, state],
            env=for_children(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    lab = Lab(process.pid, _pid_started(process.pid) or 0, f"http://127.0.0.1:{port}")
    (state / "lab.json").write_text(json.dumps(asdict(lab)))

    def ready():
        if process.poll() is not None:
            last = (state / "log/lab.log").read_text(errors="replace").strip().splitlines()[-3:]
            raise LabError(f"LAVA did not start: {' | '.join(last)}; see {state}/log")
        with contextlib.suppress(OSError):  # requests' errors are some
            header = {"Authorization": f"Token {lab.token}"}
            answer = requests.get(f"{lab.url}/api/v0.2/workers/lab/", headers=header, timeout=5)
            return answer.ok and answer.json().get("state") == "Online"
        return False

    began = time.monotonic()
    _wait(ready, _START_S, f"LAVA does not answer {_START_S:g} s after its start; see {state}/log")
    progress(f"LAVA runs at {lab.url}: {time.monotonic() - began:.1f} s")
    return lab


def _wait(condition, seconds, failure):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(failure)
        time.sleep(0.2)


def _root_file_system(progress):
    """The root file system's folder, built once (about three minutes, 1.7 GB). Raises LabError."""
    if os.geteuid() != 0:
        raise LabError("the LAVA lab runs in a chroot: start it as root")
    packages, install = (_SCRIPTS / "packages.txt").read_text().split(), (_SCRIPTS / "install").read_text()
    recipe = hashlib.sha256("\n".join((SUITE, *packages, install)).encode()).hexdigest()[:12]
    cache = folders.cache_dir() / "lava"
    final = cache / f"rootfs-{recipe}"
    steps = BuildSteps(cache / "logs", progress)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            work = cache / "rootfs.new"
            shutil.rmtree(work, ignore_errors=True)
            with steps.step("LAVA's root file system"):
                _make(work, packages, install, steps)
            work.rename(final)
            for old in cache.glob("rootfs-*"):
                if old != final:
                    shutil.rmtree(old, ignore_errors=True)
    return final


def _make(target, packages, install, steps):
    if not shutil.which("mmdebstrap"):
        listed = _SCRIPTS / "host-packages.txt"
        raise LabError(f"mmdebstrap is missing: `make lava-lab` installs what {listed} lists")
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
    steps.run([*download, "install", *packages], "Downloading LAVA", "lava-rootfs", env=quiet)
    # lava-server's own installation makes its database, so PostgreSQL has to run meanwhile: in a
    # network of its own, where its port disturbs nobody.
    alone = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", install]
    steps.run([*alone, target, *packages], "Installing LAVA", "lava-rootfs", env=quiet)
    steps.run(["chroot", target, "apt-get", "clean"], "Tidying up", "lava-rootfs")


def main(words):
    """Start or stop the lab, and say how evmperf finds it."""
    if words == ["down"]:
        print("LAVA stopped" if down() else "LAVA was not running")
        return 0
    lab = up(print, *words[1:])
    print(f"export {URL_VARIABLE}={lab.url} {TOKEN_VARIABLE}=$(cat {folder()}/shared/token)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
