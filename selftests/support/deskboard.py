"""A board on a desk: scripted, on a pseudo terminal; and the desk itself."""

import contextlib
import fcntl
import os
import pty
import select
import socket
import subprocess
import tempfile
import threading
import time
import tty

from evmperf.boards import board as boards
from selftests.support import programs
from selftests.support.fakeboard import FakeBoard


def here(command):
    return subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, text=True, check=False).stdout


class Terminal:
    """A pseudo terminal, at `path`, in the place of a cable to a port of this machine."""

    def __init__(self, port):
        leader, self._follower = pty.openpty()
        tty.setraw(self._follower)
        self.path = os.ttyname(self._follower)
        self._wire = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=self._carry, args=[leader], daemon=True).start()

    def _carry(self, leader):
        with contextlib.suppress(OSError):
            while True:
                for end in select.select([leader, self._wire], [], [])[0]:
                    if end is leader:
                        self._wire.sendall(os.read(leader, 4096))
                    elif data := self._wire.recv(4096):
                        os.write(leader, data)
                    else:
                        return

    def close(self):
        self._wire.close()
        os.close(self._follower)


class DeskBoard(FakeBoard):
    """A scripted board, on a pseudo terminal; what its kernel says lies in the folder, else it is this
    machine's.
    """

    def __init__(self, folder, *compatible, model="Some Board Rev A"):
        super().__init__()
        self.pace_s = 0.05
        self.prompt = "root@board:~# "
        self._folder = folder
        tree = folder / "device-tree"
        tree.mkdir()
        (tree / "model").write_bytes(model.encode() + b"\0")
        (tree / "compatible").write_bytes(b"".join(c.encode() + b"\0" for c in compatible))
        self._terminal = Terminal(self.port)
        self.path = self._terminal.path
        deadline = time.monotonic() + 10
        while not self._client and time.monotonic() < deadline:
            time.sleep(0.01)

    def _in_shell(self, line):
        command, mark, _ = line.rpartition("; echo evm'perf-end'")
        if not mark:
            super()._in_shell(line)
            return
        for place in ("/proc/device-tree", "/proc/loadavg", "/sys/class/mmc_host", "/sys/kernel/debug"):
            if (own := self._folder / place.rpartition("/")[2]).exists():
                command = command.replace(place, str(own))
        said = here(command)
        said = said.replace("\n", "\r\n")
        self.say(f"{said}evmperf-end\r\n{self.prompt}")

    def close(self):
        super().close()
        self._terminal.close()


@contextlib.contextmanager
def this_machine():
    """This machine is a board for one session at a time: the steps of all write below one folder."""
    with boards.Path(tempfile.gettempdir(), "evmperf-selftests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def evmperf(*words, **more):
    with this_machine():
        return programs.evmperf("desk", *words, **more)
