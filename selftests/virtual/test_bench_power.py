"""Switching a virtual board on and off, and what its console shows of it."""

import http.client
import os
import re
import signal
import socket

import pytest
import requests
from benchlab import processes
from evmperf_virtual import disks

from evmperf.model.errors import LabError
from selftests.support.placelab import until
from selftests.support.stamps import read_stamps

pytestmark = pytest.mark.virtual_evm


def test_input_without_power_does_not_reach_the_next_boot(bench, console):
    for _ in range(2):
        console.drain()
        console.send(b"\n" * 1000)
        bench.on()
        # A key that waits ends the countdown at once; without one it takes its seconds.
        at = console.wait_for(b"autoboot")
        end = console.wait_for(b"\n")
        shown = re.search(rb"\d+", console.said[at:end])
        assert int(shown[0]) >= 1
        assert arrival(console, end) - arrival(console, at) > 0.7 * int(shown[0])
        bench.off()


def arrival(console, position):
    """When the byte before this position arrived, in seconds."""
    return next(ns for seen, ns in console.arrivals if seen >= position) / 1e9


def test_stamps_cover_every_byte_once(bench, console):
    until(lambda: bench.status().console_clients == 1)
    for _ in range(2):
        bench.on()
        console.stop_autoboot()
        console.send(b"printenv\n")
        console.wait_for(b"=> ")
        bench.off()
    status = bench.status()
    until(lambda: len(console.said) == status.console_bytes, 30)
    chunks = read_stamps(bench.folder / "console.stamps")
    position, last = 0, 0
    for offset, length, monotonic_ns, _ in chunks:
        assert offset == position
        assert length > 0
        assert monotonic_ns >= last
        position, last = offset + length, monotonic_ns
    assert position == status.console_bytes
    # Nobody sees a byte before the bench stamped it.
    ends = iter(console.arrivals)
    seen, arrived = next(ends)
    for offset, _, monotonic_ns, _ in chunks:
        while seen <= offset:
            seen, arrived = next(ends)
        assert monotonic_ns <= arrived


def test_quick_power_cycles(bench):
    """What a killed QEMU still holds (taps, disks) must not get into the way of the next."""
    files = [path for path in (bench.folder / "disks").iterdir() if path.name != "image"]
    for _ in range(10):
        bench.on()
        assert all(disks.in_use(path) for path in files)
        bench.off()
        assert not any(disks.in_use(path) for path in files)
    bench.off()
    assert bench.status().power_cycles == 10


def test_why_qemu_ended_is_told_and_it_is_replaced(bench, console):
    bench.on()
    pid = bench.status().qemu_pid
    bench.on()
    assert bench.status().qemu_pid == pid is not None
    os.kill(pid, signal.SIGKILL)
    assert "SIGKILL" in reason_of_end(bench)
    power = f"http://127.0.0.1:{bench.record.power_port}/power/0"
    assert requests.get(power, timeout=5).text == "0"
    bench.off()
    bench.on()
    assert bench.status().qemu_pid not in (None, pid)
    console.stop_autoboot()
    console.send(b"poweroff\n")
    assert "the guest powered itself off" in reason_of_end(bench)


def reason_of_end(bench):
    """Wait until QEMU has ended with its power on; why it did."""
    until(lambda: bench.status().qemu_pid is None)
    status = bench.status()
    assert status.power, "the switch is still on"
    return status.last_exit.reason


def test_bad_qemu_option_is_told_at_once(make_bench):
    bench = make_bench("bad", qemu_options=["-no-such-option"])
    with pytest.raises(LabError, match=r"QEMU ended .*-no-such-option"):
        bench.on()
    status = bench.status()
    assert not status.power
    assert status.qemu_pid is None
    assert not processes(bench.folder)


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"PUT /power/0 HTTP/1.1\r\nContent-Length: -1\r\n\r\n1", 400),
        (b"PUT /power/0 HTTP/1.1\r\nContent-Length: 1\r\n\r\n7", 400),
        (b"PUT /power/0 HTTP/1.1\r\n\r\n", 400),
        (b"PUT /power/0 HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", 400),
        (b"DELETE /power/0 HTTP/1.1\r\n\r\n", 400),
        (b"GET /power/1 HTTP/1.1\r\n\r\n", 400),
        (b"GET /status HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_requests(shared_bench, request_bytes, expected):
    with socket.create_connection(("127.0.0.1", shared_bench.record.power_port), timeout=5) as link:
        link.sendall(request_bytes)
        link.shutdown(socket.SHUT_WR)
        answer = http.client.HTTPResponse(link)
        answer.begin()
        answer.read()
    assert answer.status == expected
    assert not shared_bench.status().power
