"""Ends of a boot that a board file names, on a virtual EVM, beside packets on its tap and its console."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evmperf.boards import board as boards
from evmperf.boards import ends
from selftests.support import virtualbench
from selftests.support.stamps import Heard

pytestmark = pytest.mark.virtual_evm

CYCLES = int(os.environ.get("EVMPERF_END_CYCLES", "3"))
SERVICE = Path(__file__).with_name("boot_ends.sh").read_text()
"""What starts beside getty; its answers come one after the other. `stty` waits until the line has left."""
SYSTEMCTL = "#!/bin/sh\ncat /run/unit 2>/dev/null || echo 0\n"
SNIFFER = """
import json, socket, struct, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: the kernel's own stamp
offset = time.time_ns() - time.monotonic_ns()
print("ready", flush=True)
while True:
    frame, extra, _, _ = s.recvmsg(2048, 256)
    if frame[12:14] != b"\\x08\\x00" or frame[26:30] != bytes((192, 168, 100, 2)):
        continue
    sec, ns = struct.unpack("qq", extra[0][2])
    at, protocol = sec * 10**9 + ns - offset, frame[23]
    if protocol == 1 and frame[34] == 0:
        print(json.dumps(["net", at]), flush=True)
    elif protocol == 6 and frame[34:36] == (8080).to_bytes(2, "big"):
        if frame[47] == 0x12:
            print(json.dumps(["port", at]), flush=True)
        elif b"HTTP/1.1 200" in frame or b"HTTP/1.0 200" in frame:
            print(json.dumps(["web", at]), flush=True)
"""
ASKED = (
    "net=ping:192.168.100.2",
    "port=tcp:192.168.100.2:8080",
    "web=http://192.168.100.2:8080/ready",
    "app=line:^app is ready",
    "unit=unit:app.service",
    "lamp=gpio:lamp",
)


@pytest.fixture(scope="module")
def env_file(env_file):
    """A board file with a line that Labgrid reads from the file `lamp` beside it."""
    lamp = env_file.with_name("lamp")
    lamp.write_text("0\n")
    driver = f"      FileDigitalOutputDriver: {{name: lamp, filepath: {lamp}}}\n"
    env_file.write_text(env_file.read_text().replace("    drivers:\n", f"    drivers:\n{driver}", 1))
    return env_file


@pytest.fixture(scope="module")
def board_with_service(env_file):
    """A bench on a board that starts a service of the test's."""
    with virtualbench.reached(env_file, ends.checked(boards.load(env_file), ASKED)) as bench:
        shell, path = bench.shell(), "/usr/bin/systemctl"
        shell.run(f"cat >{path} <<'EOF'\n{SYSTEMCTL}EOF\nchmod +x {path}", 20)
        virtualbench.starts(shell, "once", SERVICE)
        yield bench


class Clock:
    """The test's own clock: when packets passed the tap, when lines left the board, and when it lit the lamp,
    which it does once it hears of the unit.
    """

    def __init__(self, bench, virtual, lamp):
        words = [*bench._words_beside(), sys.executable, "-c", SNIFFER]
        self.sniffer = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.sniffer.stdout.readline() == "ready\n"
        self.packets = []
        self.heard = Heard(virtual)
        self._lamp, self._is_closed = lamp, threading.Event()
        threading.Thread(target=self._read_packets, daemon=True).start()
        threading.Thread(target=self._light, daemon=True).start()

    def _light(self):
        lit = self.heard.said.count(b"unit is active")
        while not self._is_closed.wait(0.01):
            if self.heard.said.count(b"unit is active") > lit:
                lit += 1
                before_ns = time.monotonic_ns()
                self._lamp.write_text("1\n")
                self.lit = before_ns, time.monotonic_ns()

    def _read_packets(self):
        for line in self.sniffer.stdout:
            name, at_ns = json.loads(line)
            self.packets.append((name, at_ns))

    def close(self):
        self._is_closed.set()
        self.sniffer.kill()
        self.sniffer.wait()
        self.heard.close()

    def told_late_s(self):
        """By how much the line of the unit may be later than its stamp, as the board says."""
        *_, (before, after) = re.findall(rb"unit told between ([\d.]+) and ([\d.]+)", self.heard.said)
        return float(after) - float(before) + 0.01

    def truth(self, start_ns):
        """Between which times each end came first, after the kernel's start: lines pass the lab."""
        found = {"lamp": self.lit}
        for name, at_ns in self.packets:
            if at_ns > start_ns:
                found.setdefault(name, (at_ns, at_ns))
        for name, text in (("app", b"app is ready"), ("unit", b"unit is active")):
            found[name] = self.heard.passed(self.heard.said.rindex(text) + len(text))
        return found


@pytest.mark.alone  # beside two other virtual EVMs the ends came later than their deadline of 60 s
def test_six_kinds_of_end_are_within_their_error(board_with_service, own_bench, env_file):
    bench, lamp = board_with_service, env_file.with_name("lamp")
    with contextlib.closing(Clock(bench, own_bench, lamp)) as clock:
        for _ in range(CYCLES):
            lamp.write_text("0\n")
            boot = bench.cold_boot("")
            assert boot.error is None
            assert boot.missed == {}
            truth = clock.truth(boot.marks["starting_kernel"].mono_ns)
            for name, mark in boot.ends.items():
                first_ns, last_ns = truth[name]
                off_s = (mark.mono_ns - min(max(mark.mono_ns, first_ns), last_ns)) / 1e9
                print(f"{name}: {off_s * 1e3:+.2f} ms off, {mark.error_s * 1e3:.2f} ms stated")
                slack_s = clock.told_late_s() if name == "unit" else 0.0
                assert abs(off_s) <= mark.error_s + slack_s, (name, off_s, mark.error_s)
                assert mark.error_s < 2.0
