"""A real LAVA for the tests, with a state folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.commands.lava.server import LavaServer
from selftests.support import on_request
from selftests.support.lava_labs import started
from selftests.support.lavalab import Lab

OPTION = "--all-lava-jobs"


def pytest_addoption(parser: pytest.Parser) -> None:
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    on_request.skip_unless_asked(config, items, OPTION, "long_lava_job")


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
