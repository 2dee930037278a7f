"""A real LAVA for the tests, with a state folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.lava.lab import control
from evmperf.lava.lab.control import Lab
from evmperf.lava.server import TOKEN_VARIABLE, URL_VARIABLE, Server
from selftests.support import on_request

OPTION = "--all-lava-jobs"


def pytest_addoption(parser: pytest.Parser) -> None:
    on_request.add_option(parser, OPTION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    on_request.skip_unless_asked(config, items, OPTION, "long_lava_job")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """LAVA's server and worker, and two virtual EVMs, on free ports."""
    state = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(state))
        patch.setenv("XDG_CONFIG_HOME", str(state / "no-config"))
        for name in (URL_VARIABLE, TOKEN_VARIABLE):
            patch.delenv(name, raising=False)
        try:
            yield control.up(print)
        finally:
            control.down()


@pytest.fixture(scope="session")
def server(lab: Lab) -> Server:
    return Server(lab.url, lab.token)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"
