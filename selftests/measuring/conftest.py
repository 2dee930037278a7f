"""A virtual EVM of our own to measure and to break, behind a console line that can be cut."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from evmperf_virtual import client, envfile
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.lab.bench import LabgridBench
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_run_id
from evmperf.model.run import Run
from selftests.measuring.session import Pytest
from selftests.support import on_request, virtualbench

WHY = "--why-faults"
TOOLS = ["fio", "mpstat", "dd", "no-such-tool"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-rows", action="store_true", help="measure every row of every table, not one of each"
    )
    on_request.add_option(parser, WHY)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    on_request.skip_unless_asked(config, items, WHY, "long_why")


class Line:
    """A TCP line between a client and a console server that can be cut for a while."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self, seconds: float) -> None:
        """Close all connections and refuse new ones for so long."""
        self._server.close()
        with self._lock:
            for pair in self._pairs:
                for end in pair:
                    end.close()
            self._pairs.clear()
        self._ended.wait(seconds)
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.close()
        with self._lock:
            for pair in self._pairs:
                for end in pair:
                    end.close()

    def _accept(self) -> None:
        server = self._server
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target_port))
            with self._lock:
                self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    @staticmethod
    def _carry(near: socket.socket, far: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(near, selectors.EVENT_READ, far)
                selector.register(far, selectors.EVENT_READ, near)
                while True:
                    for key, _ in selector.select():
                        data = key.fileobj.recv(65536)
                        if not data:
                            raise ConnectionResetError
                        key.data.sendall(data)
            except (OSError, ValueError):
                near.close()
                far.close()


@pytest.fixture(scope="session")
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state folder of our own, so that a bench in use is not disturbed."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def virtual_bench(own_state: Path) -> Iterator[client.LabClient]:
    """A running bench with the power off."""
    with virtualbench.running("virtual") as bench:
        yield bench


@pytest.fixture(scope="session")
def env_file(virtual_bench: client.LabClient, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board file for that bench."""
    return virtualbench.board_file(virtual_bench, "virtual", tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="session")
def line(virtual_bench: client.LabClient) -> Iterator[Line]:
    """The line to the board's console."""
    line = Line(virtual_bench.record.serial_port)
    yield line
    line.close()


@pytest.fixture(scope="module")
def bench(
    virtual_bench: client.LabClient, line: Line, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabgridBench]:
    """evmperf's bench on that board, over that line; one a module, since other modules' sessions
    power-cycle the same board.
    """
    path = tmp_path_factory.mktemp("env") / "line.yaml"
    envfile.write(
        envfile.source("virtual"), path, serial_port=line.port, power_port=virtual_bench.record.power_port
    )
    environment = Environment(str(path))
    bench = LabgridBench(environment.get_target(), boards.load(path))
    yield bench
    bench.off()
    environment.cleanup()


@pytest.fixture
def runner(bench: LabgridBench, tmp_path: Path) -> Runner:
    """A runner with a spool of its own."""
    spool = Spool(tmp_path, Run(id=new_run_id("faults"), board="faults", profile="quick"))
    return Runner(bench, spool, "quick", TOOLS)


@pytest.fixture
def measuring(env_file: Path, tmp_path: Path) -> Iterator[Callable[..., Pytest]]:
    started: list[Pytest] = []

    def start(
        select: str, *options: str, results: Path = tmp_path / "results", board: Path = env_file
    ) -> Pytest:
        started.append(Pytest(board, results, select, options))
        return started[-1]

    yield start
    for session in started:
        if session.process.poll() is None:
            session.process.kill()
            session.process.wait()
