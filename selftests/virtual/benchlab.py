"""What the tests of the bench use to look at it from outside."""

import contextlib
import os
import select
import socket
import time
from pathlib import Path

import pytest

DEADLINE = 30.0
"""Seconds after which a test gives up waiting; far more than anything takes on an idle machine."""


class SerialClient:
    """A client of the console that keeps all it has seen."""

    def __init__(self, port):
        self.seen = b""
        self.arrivals = []
        """(bytes seen up to then, monotonic ns) by chunk."""
        self.line = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()

    def send(self, data):
        self.line.sendall(data)

    def receive(self, timeout):
        """Take one chunk; False if the other end closed. Fails the test after `timeout` s."""
        self.line.settimeout(max(0.001, timeout))
        try:
            data = self.line.recv(65536)
        except TimeoutError:
            pytest.fail(f"nothing more came on the console; last: {self.seen[-300:]!r}")
        self.seen += data
        self.arrivals.append((len(self.seen), time.monotonic_ns()))
        return bool(data)

    def wait_for(self, text, start=0):
        """Wait until the text has come after position `start`; returns the position behind it."""
        deadline = time.monotonic() + DEADLINE
        while text not in self.seen[start:]:
            if not self.receive(deadline - time.monotonic()):
                pytest.fail(f"the console closed before {text!r}: {self.seen[-300:]!r}")
        return self.seen.index(text, start) + len(text)

    def drain(self):
        """Take what is there already."""
        while select.select([self.line], [], [], 0.2)[0]:
            if not self.receive(1):
                return

    def stop_autoboot(self):
        """Come from power-on to U-Boot's prompt; returns the position behind the prompt."""
        at = self.wait_for(b"autoboot", len(self.seen))
        self.send(b"\n")
        return self.wait_for(b"=> ", at)


def processes(state):
    """All QEMUs that have this state folder in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes()
            if os.fsencode(state) in words and b"-chardev" in words:
                found.append(int(path.parent.name))
    return found


def wait_for_end(pid):
    """Wait until the process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], DEADLINE)[0], f"process {pid} lives on"
    finally:
        os.close(handle)
