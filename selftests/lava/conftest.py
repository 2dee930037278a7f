"""A real LAVA with a state folder of its own, and a server on loopback that answers what a test wants."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evmperf.commands.lava.server import TOKEN_VARIABLE, URL_VARIABLE, LavaServer
from selftests.support import web
from selftests.support.lavalab import Lab, started


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with started(tmp_path_factory, "virtual") as there:
        yield there


@pytest.fixture(scope="session")
def server(lab: Lab) -> LavaServer:
    return LavaServer(lab.url, lab.token)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, Callable[..., None]]]:
    """What the server of EVMPERF_LAVA_URL answers: by path a function of a handler, whose `sent` was posted.
    The folder is one's own.
    """
    known: dict[str, Callable[..., None]] = {}

    class Handler(web.Handler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.removeprefix("/api/v0.2/").partition("?")[0]
            with contextlib.suppress(OSError):
                known.get(path, lambda handler: handler.say(404, b"null"))(self)

        def do_POST(self):
            self.sent = self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

    monkeypatch.setenv(TOKEN_VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    with web.serving(Handler) as server:
        monkeypatch.setenv(URL_VARIABLE, server.url)
        yield known
