"""A real LAVA for the tests, with a state folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.lava.lab import control
from evmperf.lava.lab.control import Lab
from evmperf.lava.server import TOKEN_VARIABLE, URL_VARIABLE, Server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-lava-jobs", action="store_true", help="also the jobs that are too long for CI"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all-lava-jobs", default=False):
        return
    for item in items:
        if item.get_closest_marker("long_lava_job"):
            item.add_marker(pytest.mark.skip(reason="one real job is in CI; make lava-test"))


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
