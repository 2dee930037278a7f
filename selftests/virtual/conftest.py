"""Benches of their own for the tests: own state folder, free ports, the user's image."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evmperf.virtual import image
from evmperf.virtual.client import Bench, all_benches

DEADLINE = 30.0
"""Seconds after which a test gives up waiting; far more than anything takes on an idle machine."""


class SerialClient:
    """A client of the console that keeps all it has seen."""

    def __init__(self, port: int) -> None:
        self.seen = b""
        self.arrivals: list[tuple[int, int]] = []
        """(bytes seen up to then, monotonic ns) by chunk."""
        self.line = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)

    def __enter__(self) -> SerialClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()

    def send(self, data: bytes) -> None:
        self.line.sendall(data)

    def receive(self, timeout: float) -> bool:
        """Take one chunk; False if the other end closed. Fails the test after `timeout` s."""
        self.line.settimeout(max(0.001, timeout))
        try:
            data = self.line.recv(65536)
        except TimeoutError:
            pytest.fail(f"nothing more came on the console; last: {self.seen[-300:]!r}")
        self.seen += data
        self.arrivals.append((len(self.seen), time.monotonic_ns()))
        return bool(data)

    def wait_for(self, text: bytes, start: int = 0) -> int:
        """Wait until the text has come after position `start`; returns the position behind it."""
        deadline = time.monotonic() + DEADLINE
        while text not in self.seen[start:]:
            if not self.receive(deadline - time.monotonic()):
                pytest.fail(f"the console closed before {text!r}: {self.seen[-300:]!r}")
        return self.seen.index(text, start) + len(text)

    def drain(self) -> None:
        """Take what is there already."""
        while select.select([self.line], [], [], 0.2)[0]:
            if not self.receive(1):
                return

    def stop_autoboot(self) -> int:
        """Come from power-on to U-Boot's prompt; returns the position behind the prompt."""
        at = self.wait_for(b"autoboot", len(self.seen))
        self.send(b"\n")
        return self.wait_for(b"=> ", at)


@pytest.fixture(scope="session")
def built_image() -> image.Image:
    """The image that all tests share; made if it is not there."""
    return image.build("virtual", progress=print)


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder for the tests only, so that a bench in use is left alone."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(folder))
        yield folder


@pytest.fixture
def make_bench(state: Path, built_image: image.Image) -> Iterator[Callable[..., Bench]]:
    """Start benches on free ports; afterwards nothing may be left of any of them."""

    def make(name: str = "unit", **options: Any) -> Bench:
        bench = Bench(name)
        assert bench.start(**{"serial_port": 0, "power_port": 0, **options})
        return bench

    try:
        yield make
    finally:
        for bench in all_benches():
            if bench.name != "shared":
                bench.stop()
    assert not processes(state), "a process is left behind"
    assert not [path for path in state.glob("*/bench.json") if path.parent.name != "shared"]


@pytest.fixture(scope="module")
def shared_bench(state: Path, built_image: image.Image) -> Iterator[Bench]:
    """One bench for tests that never switch it on."""
    bench = Bench("shared")
    bench.start(serial_port=0, power_port=0)
    yield bench
    bench.stop()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


@pytest.fixture
def console(bench: Bench) -> Iterator[SerialClient]:
    with SerialClient(bench.ports.serial) as client:
        yield client


def processes(state: Path) -> list[int]:
    """All QEMUs that have this state folder in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes()
            if os.fsencode(state) in words and b"-chardev" in words:
                found.append(int(path.parent.name))
    return found


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that nobody tells us about; fails the test after the deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {DEADLINE:g} s: {what}")
        select.select([], [], [], 0.01)


def wait_for_end(pid: int) -> None:
    """Wait until the process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], DEADLINE)[0], f"process {pid} lives on"
    finally:
        os.close(handle)
