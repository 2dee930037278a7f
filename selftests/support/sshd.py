"""A real sshd on loopback, for tests of what goes over SSH."""

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import time

import pytest
import yaml

from selftests.support.ports import free_port

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


class Sshd:
    """An sshd of our own that lets the user of this process in with a key made for it.

    `path` is for the front of its sessions' PATH, `prefix` a command that runs it elsewhere.
    """

    def __init__(self, folder, path="", prefix=()):
        if not SSHD:
            pytest.skip("no sshd here: apt-get install openssh-server")
        self.folder = folder
        self.prefix = prefix
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name]
            subprocess.run(command, check=True)
        (folder / "user.pub").rename(folder / "authorized")
        self.port = free_port()
        (folder / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
            f"PermitRootLogin yes\nPidFile none\n"
            + (f"SetEnv PATH={path}:{os.environ['PATH']}\n" if path else "")
        )
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # noqa: PTH103  # what sshd wants
        self.log = (folder / "log").open("w")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*self.prefix, SSHD, "-D", "-e", "-f", self.folder / "config"], stderr=self.log
        )
        deadline = time.monotonic() + 20
        while "Server listening" not in (self.folder / "log").read_text():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    @property
    def options(self):
        words = ["-F", "none", "-p", str(self.port), "-i", str(self.folder / "user")]
        for said in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"):
            words += ["-o", said]
        return words

    def stop(self):
        """End it with all its sessions, as a tester that is switched off; one that has ended stays so."""
        if self.process.poll() is not None:
            return
        group = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for pid in (self.process.pid, *map(int, group)):
            # A session may end by itself once its parent is gone.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def board_file(folder, sshd, drivers=(), **strategy):
    """A board file with an SSHDriver, a strategy with these arguments, and these drivers."""
    main = {
        "features": ["crypto", "boot"],
        "options": {
            "board": {"name": "desk", "title": "Desk", "description": "one", "profile": "quick"},
            "boot": {"medium": "sd"},
        },
        "resources": {
            "NetworkService": {"address": "127.0.0.1", "username": getpass.getuser(), "port": sshd.port}
        },
        "drivers": {
            **dict(drivers),
            "SSHDriver": {"keyfile": str(sshd.folder / "user")},
            "K3BootStrategy": strategy,
        },
    }
    file = folder / "desk.yaml"
    data = {"imports": ["evmperf.lab.shell", "evmperf.lab.strategy"], "targets": {"main": main}}
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    return file
