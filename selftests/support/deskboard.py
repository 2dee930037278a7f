"""A board on a desk: scripted, on a pseudo terminal, with a disk that is a file; and the desk itself."""

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
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


class Disks:
    """An eMMC that is a file, with a table that sfdisk made; `tells` whether its kernel sees changes made by
    commands, as it does when it boots.
    """

    def __init__(self, folder, table, mib, grown_mib, tells=True):
        self._folder = folder
        self._tells = tells
        self._sys = folder / "sys/block/mmcblk0"
        (self._sys / "device").mkdir(parents=True)
        (self._sys / "holders").mkdir()
        (folder / "dev").mkdir()
        self.image = folder / "dev/mmcblk0"
        self.image.touch()
        os.truncate(self.image, mib << 20)
        subprocess.run(["sfdisk", "-q", self.image], input=table, text=True, check=True)
        os.truncate(self.image, grown_mib << 20)
        for name, text in {"device/type": "MMC", "size": (grown_mib << 20) // 512, "ro": 0}.items():
            (self._sys / name).write_text(f"{text}\n")
        self.boot()

    @property
    def table(self):
        """Number, first sector and count of each partition."""
        done = subprocess.run(["sfdisk", "-J", self.image], capture_output=True, check=True)
        found = json.loads(done.stdout)["partitiontable"]["partitions"]
        return {(int(p["node"].rpartition("p")[2]), p["start"], p["size"]) for p in found}

    def run(self, command):
        """What a command on the board prints."""
        command = command.replace("/sys/class/block/", "/sys/block/mmcblk0/")
        for root in ("/sys/block", "/dev/mmcblk", "/dev/$n"):
            command = command.replace(root, f"{self._folder}{root}")
        # Of a file partx would make a loop device.
        said = here(command.replace("partx --add", "true"))
        if self._tells:
            self.boot()
        return said.replace(str(self._folder), "")

    def rewrite(self, table):
        """Another table on the disk, that the kernel knows nothing of."""
        subprocess.run(["sfdisk", "-q", "-f", self.image], input=table, text=True, check=True)

    def boot(self):
        """The kernel reads the table; it shows two sectors of an extended partition."""
        done = subprocess.run(["sfdisk", "-J", self.image], capture_output=True, check=True)
        entries = json.loads(done.stdout)["partitiontable"].get("partitions", [])
        extended = {e["node"] for e in entries if e["type"] in ("5", "f", "85")}
        for folder in self._sys.glob("mmcblk0p*"):
            shutil.rmtree(folder)
        for entry in entries:
            folder = self._sys / entry["node"].rpartition("/")[2]
            folder.mkdir()
            (folder / "start").write_text(f"{entry['start']}\n")
            (folder / "size").write_text(f"{2 if entry['node'] in extended else entry['size']}\n")


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
        self.disks = None
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
        said = self.disks.run(command) if self.disks else here(command)
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
