"""A user with sudo who exists for one process alone: in a mount namespace with accounts of its own."""

import contextlib
import os
import pty
import select
import shutil
import subprocess
import termios
import threading
from pathlib import Path

import pytest

NAME = "evmperf-desk"
PASSWORD = "secret"
_ID = 4711
_KEPT = ("/run/sudo", "/var/lib/sudo", "/var/log")


def prefix(folder, rule):
    """The command before another one which then knows the user; `rule` is the user's in sudoers."""
    if os.geteuid() != 0 or not shutil.which("sudo"):
        pytest.skip("needs root and sudo: apt-get install sudo")
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", PASSWORD], capture_output=True, text=True, check=True
    ).stdout.strip()
    lines = {
        "passwd": f"{NAME}:x:{_ID}:{_ID}::/:/bin/bash",
        "shadow": f"{NAME}:{hashed}:19000:0:99999:7:::",
        "group": f"{NAME}:x:{_ID}:",
    }
    for name, line in lines.items():
        (folder / name).write_text(f"{(Path('/etc') / name).read_text()}{line}\n")
    (folder / "sudoers").write_text(f"root ALL=(ALL) ALL\n{NAME} {rule}\n" if rule else "")
    (folder / "sudoers").chmod(0o440)
    binds = " && ".join(f"mount --bind {folder}/{name} /etc/{name}" for name in (*lines, "sudoers"))
    # What login and sudo keep of users is of this one alone.
    hides = " && ".join(f"mkdir -p {place} && mount -t tmpfs -o mode=755 none {place}" for place in _KEPT)
    return ["unshare", "-m", "sh", "-c", f'{binds} && {hides} && exec "$@"', "sh"]


class LoginConsole:
    """login(1) again and again on a pseudo terminal, which `path` is the other end of."""

    def __init__(self, folder, rule):
        inside, self._follower = pty.openpty()
        outside, self._desk = pty.openpty()
        self.path = os.ttyname(self._desk)
        settings = termios.tcgetattr(self._desk)
        settings[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(self._desk, termios.TCSANOW, settings)
        own = ["setsid", "--ctty"]  # Ctrl-C is for what runs on it
        command = [*own, *prefix(folder, rule), "sh", "-c", "trap : INT; while sleep 0.2; do login; done"]

        self._process = subprocess.Popen(
            command,
            stdin=self._follower,
            stdout=self._follower,
            stderr=self._follower,
            env={"PATH": os.environ["PATH"], "TERM": "dumb"},
        )
        self._ends = {inside: outside, outside: inside}
        self._closed, self._asked = threading.Event(), threading.Event()
        self._carrier = threading.Thread(target=self._carry, daemon=True)
        self._carrier.start()
        assert self._asked.wait(60), "login asks for no name"

    def _carry(self):
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                for end in select.select([*self._ends], [], [], 0.1)[0]:
                    os.write(self._ends[end], os.read(end, 4096))
                    self._asked.set()

    def close(self):
        """Hang up, which ends the login and what runs in it."""
        self._closed.set()
        self._carrier.join()
        for end in (*self._ends, self._follower, self._desk):
            os.close(end)
        self._process.wait(timeout=20)
